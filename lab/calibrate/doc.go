// Calibrate measures on labelled pairs of attempts how well the similarity of fingerprints tells a repetition
// from a different attempt: what the threshold in use does, and which threshold the pairs recommend. The same
// pairs, options and seed give the same report. Run `go run ./calibrate -h` in lab/ for its flags.
//
//	question                                    file
//	what are the flags                          main.go
//	what does a line of the input look like     calibrate.go, Pair
//	what price may a recommended threshold have calibrate.go, MaxFPR
//	what is similar                             calibrate.go, byPrint
//	which threshold is recommended              scale.go, choose
//	where do the intervals come from            scale.go, interval
//	is a threshold shown to be better           scale.go, heldOut; report.go, Verdict
//	what is printed, as JSON and for people     report.go
//	the curves, in characters and as SVG        report.go, roc.svg.tmpl
//	which pairs does a server's own log give    export.go
package main
