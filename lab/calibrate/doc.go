// Calibrate measures how well the similarity of fingerprints separates repetitions from different attempts. It reads
// labelled pairs of attempts, and reports the current threshold's rates and the recommended threshold. The same pairs,
// options and seed give the same report. Run `go run ./calibrate -h` in lab/ for its flags.
//
//	main.go       flags
//	calibrate.go  input (Pair), the allowed error (MaxFPR), similarity (byPrint)
//	scale.go      the recommended threshold (choose), intervals, unseen tasks (heldOut)
//	report.go     JSON, text, the verdict, curves (roc.svg.tmpl)
//	export.go     pairs from a server's log
package main
