// Package ground prepares what a repository works on before any agent does: the image that is its root file system,
// and layers, which are what its setup left and every attempt and every verification begins with. A layer is never
// written again. Whoever begins with one writes to folders of its own, over the layer (overlayfs) or after a copy.
//
//	question                                                     file
//	where is a layer, who builds it, which ones go               store.go
//	what is a layer's key, which files of a repository decide    key.go
//	how does somebody get a layer without writing to it          over.go
//	which digest does an image's name stand for                  image.go (Digest)
//	which hosts are asked for images                             image.go (named)
//	which images are kept, and how long                          image.go (keptImages), store.go (Evict)
//	what of an image is unpacked, and what can it reach          unpack.go
package ground
