// Package setup creates Pawl's GitHub App by GitHub's manifest flow in a browser, and writes a server's
// configuration.
//
//	question                                             file
//	which addresses and names are accepted                setup.go
//	what does the user read at the end                    setup.go
//	which permissions and events does the App request     page.go
//	who may use the local page, and how often             page.go
//	which files are written, and with which modes         page.go, writeSecret
package setup
