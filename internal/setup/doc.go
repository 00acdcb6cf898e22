// Package setup creates Pawl's GitHub App with GitHub's manifest flow in a browser, and writes a server's configuration.
//
//	setup.go  the flags, the flow, the next steps
//	page.go   the local page, the App's permissions and events, the written files
package setup
