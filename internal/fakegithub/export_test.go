package fakegithub

// GitsStarted returns how many git processes the server itself has started.
func (s *Server) GitsStarted() int64 { return s.gits.Load() }
