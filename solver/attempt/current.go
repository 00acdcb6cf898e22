package attempt

import "github.com/pawlbot/pawl/config"

// Current is the configuration in force. Each step and each attempt keeps the one that it began with.
func (e *Env) Current() *config.Server {
	if c := e.reloaded.Load(); c != nil {
		return c
	}
	return &e.Config
}

// Use has what begins from now on go by another configuration.
func (e *Env) Use(c *config.Server) { e.reloaded.Store(c) }
