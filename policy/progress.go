package policy

// Progress reports whether an attempt moved the work forward: the tree at its
// end differs from the tree at its start, whoever committed. A tree that is
// unknown is no progress.
func Progress(startTree, endTree string) bool {
	return startTree != "" && endTree != "" && startTree != endTree
}
