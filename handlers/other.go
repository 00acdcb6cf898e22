package handlers

// Other handles the events that GitHub knows and that mean nothing to Pawl, such as
// the ping of a new App. They are stored and noted like every other delivery, so
// that an operator sees that GitHub reaches the server. It names all of go-github's
// events; the handlers before it take theirs.
type Other struct{ handler }

func nothing(*payload) []Activity { return nil }
