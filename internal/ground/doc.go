// Package ground prepares a repository's base environment before any agent works: the image of its root file
// system, and layers, which are the setup's results that every attempt and verification begins with. A layer is
// never written again: its users write to their own folders, over the layer (overlayfs) or after a copy.
//
//	question                                                     file
//	where is a layer, who builds it, which ones go               store.go
//	what is a layer's key, which files of a repository decide    key.go
//	how is a layer used without writing to it                    over.go
//	which digest does an image's name stand for                  image.go (Digest)
//	which hosts are asked for images                             image.go (named)
//	which images are kept, and how long                          image.go (keptImages), store.go (Evict)
//	what of an image is unpacked, and what can it reach          unpack.go
package ground
