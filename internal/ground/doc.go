// Package ground prepares what a repository works on before any agent does.
//
//	question                                              file
//	which digest does an image's name stand for           image.go (Digest)
//	which hosts are asked for images                      image.go (named)
//	which images are kept, and how long                   image.go (evict)
//	what of an image is unpacked, and what can it reach   unpack.go
package ground
