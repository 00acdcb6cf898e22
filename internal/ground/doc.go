// Package ground prepares a repository's base environment before any agent works: the image of the root file system,
// and layers with the setup's results. Every attempt and verification starts from them. A layer is immutable: its users
// write to their own folders, with overlayfs or in a copy.
//
//	storing, building and evicting layers              store.go
//	a layer's key, and the files that determine it     key.go
//	using a layer without writing to it                over.go
//	resolving an image's name to a digest              image.go, Get
//	allowed registries                                 image.go, allowed
//	limits of images                                   image.go, maxImage; store.go, Evict
//	unpacking an image safely                          unpack.go
package ground
