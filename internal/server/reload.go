package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/commands"
)

// lookInterval is how often a server checks its file. Two checks must agree, since an editor may be writing the file.
const lookInterval = 2 * time.Second

// File is a server's configuration file.
type File struct {
	Name   string
	Listen string           // replaces server.address if not empty
	Hangup <-chan os.Signal // a signal triggers a read
	stamp  string           // state of the file when it was last read
}

func (f *File) Read() (config.Server, error) {
	f.stamp = f.now()
	cfg, err := config.Load(f.Name, os.LookupEnv)
	if f.Listen != "" {
		cfg.HTTP.Address = f.Listen
	}
	return cfg, err
}

// now identifies the file's state. It is empty if the file is missing, as while an editor replaces it.
func (f *File) now() string {
	info, err := os.Stat(f.Name)
	if err != nil {
		return ""
	}
	at, _ := info.Sys().(*syscall.Stat_t) // nil on systems other than Linux
	if at == nil {
		at = new(syscall.Stat_t)
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), at.Ino)
}

// InForce records which configuration a server uses.
type InForce struct {
	PID    int       `json:"pid"`
	File   string    `json:"file"`
	ReadAt time.Time `json:"read_at"`
	Paused bool      `json:"paused"`
	// AtStart lists keys whose new values need a restart.
	AtStart []string `json:"needs_restart"`
	// Refused says why the file's content since RefusedAt is not in force, or is empty.
	Refused   string     `json:"refused,omitempty"`
	RefusedAt *time.Time `json:"refused_at,omitempty"`
}

const inForceFile = "configuration.json"

// Text describes the state to users, and what to do about it. do is empty if there is nothing to do.
func (f InForce) Text() (text, do string) {
	text = fmt.Sprintf("server %d uses %s as read at %s", f.PID, f.File, f.ReadAt.UTC().Format(time.RFC3339))
	switch {
	case f.Refused != "":
		return fmt.Sprintf("%s; its content since %s is refused: %s", text, f.RefusedAt.UTC().Format(time.RFC3339), f.Refused), "correct the file; the server reads it again on its own"
	case len(f.AtStart) > 0:
		return text + ", except settings that need a restart: " + strings.Join(f.AtStart, ", "), "restart it, and attempts are handed over"
	}
	return text, ""
}

// Running returns the running servers of a data directory on this machine.
func Running(dataDir string) []InForce {
	all := []InForce{}
	for _, dir := range Folders(dataDir) {
		var f InForce
		data, err := os.ReadFile(filepath.Join(dir, inForceFile))
		if err == nil && json.Unmarshal(data, &f) == nil && !errors.Is(syscall.Kill(f.PID, 0), syscall.ESRCH) {
			all = append(all, f)
		}
	}
	return all
}

// Level returns a configured log level.
func Level(name string) zerolog.Level {
	l, _ := zerolog.ParseLevel(name) // config has refused unknown names
	return l
}

// follower applies changes of the file.
type follower struct {
	*Server
	file     *File
	started  config.Server // configuration at the start
	last     config.Server // configuration last read
	reported InForce
}

// follow applies changes until ctx ends, and on each signal of file.Hangup.
func (s *Server) follow(ctx context.Context, file *File, started config.Server) {
	f := &follower{
		Server:   s,
		file:     file,
		started:  started,
		last:     started,
		reported: InForce{PID: os.Getpid(), File: file.Name, ReadAt: time.Now(), AtStart: []string{}},
	}
	var before InForce
	if data, err := os.ReadFile(filepath.Join(s.data.dir, inForceFile)); err == nil {
		_ = json.Unmarshal(data, &before) // otherwise nothing is known about the last run
	}
	f.inForce(ctx, before.Paused)
	for seen := file.stamp; ; {
		ask := false
		select {
		case <-ctx.Done():
			return
		case <-file.Hangup:
			ask = true
		case <-time.After(lookInterval):
		}
		if now := file.now(); !ask && (now == "" || now == file.stamp || now != seen) {
			seen = now
			continue
		}
		next, err := file.Read()
		seen = file.stamp
		if err == nil {
			err = f.reload(ctx, next)
		}
		if err != nil && ctx.Err() == nil {
			at := time.Now()
			f.reported.Refused, f.reported.RefusedAt = err.Error(), &at
			s.log.Error().Err(err).Msg("the new configuration is refused; the previous one stays in force")
			f.remember()
		}
	}
}

// reload applies the file's content. After an error, the previous content stays in force.
func (f *follower) reload(ctx context.Context, next config.Server) error {
	ShowInstalled(&next)
	changed, atStart := []string{}, []string{}
	for _, c := range f.last.Changes(&next) {
		changed = append(changed, c.String())
	}
	if len(changed) > 0 && f.deps.Check != nil {
		if _, err := f.deps.Check(ctx, &next, f.log); err != nil {
			return err
		}
	}
	for _, c := range f.started.Changes(&next) {
		if c.AtStart() {
			atStart = append(atStart, c.Key)
		}
	}
	before := f.solver.Env.Current()
	f.solver.Env.Use(before.Reloaded(next))
	zerolog.SetGlobalLevel(Level(next.Log.Level))
	f.last = next
	f.reported.ReadAt, f.reported.AtStart, f.reported.Refused, f.reported.RefusedAt = time.Now(), atStart, "", nil
	f.log.Info().Strs("changed", changed).Strs("needs_restart", atStart).Msg("the new configuration is in force; running attempts keep the previous one")
	f.inForce(ctx, before.Policy.Paused)
	if len(changed) == 0 {
		return nil
	}
	if err := f.store.WakeWaiting(ctx); err != nil {
		f.log.Warn().Err(err).Msg("wake waiting threads; they continue when their wait ends")
	}
	return nil
}

// inForce records the configuration in force. If policy.paused was lifted, it resumes the stopped threads.
func (f *follower) inForce(ctx context.Context, paused bool) {
	f.reported.Paused = f.last.Policy.Paused
	f.remember()
	if !paused || f.reported.Paused {
		return
	}
	n, err := commands.Lift(ctx, f.store, commands.Actor{
		Login: "an operator at the server",
		Where: "by policy.paused",
		At:    f.store.Now(),
	})
	if err != nil {
		f.log.Warn().Err(err).Msg("resume threads that policy.paused stopped; resume the rest by the comment /pawl resume")
	}
	f.log.Info().Int("threads", n).Msg("resumed threads that policy.paused stopped")
}

func (f *follower) remember() {
	data, _ := json.Marshal(f.reported) // never fails
	file := filepath.Join(f.data.dir, inForceFile)
	f.logged(errors.Join(os.WriteFile(file+".new", data, 0o600), os.Rename(file+".new", file)), "store the active configuration for pawl status")
}
