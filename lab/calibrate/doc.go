// Calibrate measures on labelled pairs of attempts how well fingerprints' similarity separates repetitions from
// different attempts: the current threshold's rates, and the recommended threshold. Equal pairs, options and seed give
// an equal report. Run `go run ./calibrate -h` in lab/ for its flags.
//
//	main.go       flags
//	calibrate.go  input (Pair), the allowed error (MaxFPR), similarity (byPrint)
//	scale.go      the recommended threshold (choose), intervals, unseen tasks (heldOut)
//	report.go     JSON, text, the verdict, curves (roc.svg.tmpl)
//	export.go     pairs from a server's log
package main
