package gateway

// unmarked is filled in with rung 1.
func unmarked(_ callKind, body []byte) []byte { return body }
