package fakegithub

// GitsStarted is how many git processes the server has started itself.
func (s *Server) GitsStarted() int64 { return s.gits.Load() }
