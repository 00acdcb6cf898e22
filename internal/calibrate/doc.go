// Package calibrate measures on labelled pairs of attempts how well the similarity of fingerprints tells a
// repetition from a different attempt, what the threshold in use does, and which one the pairs recommend. It
// is pure: the same pairs, options and seed give the same report.
//
// Where to look:
//
//	What does a line of the input look like?              calibrate.go (Pair)
//	What price may a recommended threshold have?          calibrate.go (MaxFPR)
//	What is similar?                                      calibrate.go (byPrint)
//	Which threshold is recommended?                       scale.go (choose)
//	Where do the intervals come from?                     scale.go (interval)
//	Is a threshold shown to be better?                    scale.go (heldOut), report.go (Verdict)
//	What is printed, as JSON and for people?              report.go
//	The curves, in characters and as SVG                  report.go, roc.svg.tmpl
package calibrate
