package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
)

func deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deliveries", Short: "Decide on webhook deliveries that could not be handled",
		Long: "Decide on webhook deliveries that could not be handled. pawl status lists them, with their GUIDs.\n" +
			"A server must run on this machine; it does what is asked.",
	}
	cmd.AddCommand(
		decideCommand("retry", "Have deliveries tried again now, and as often as new ones", "to be tried again"),
		decideCommand("dismiss", "Count deliveries as handled without trying them again", "dismissed"),
	)
	return cmd
}

func decideCommand(name, short, done string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: name + " --config FILE GUID...", Short: short, Args: cobra.MinimumNArgs(1),
		Long: short + ".\nThe GUID \"" + store.AllUnhandled + "\" means all that could not be handled.",
		RunE: func(cmd *cobra.Command, guids []string) error {
			cfg, err := config.Load(file, os.LookupEnv)
			if err != nil {
				return err
			}
			for _, guid := range guids {
				answer, err := askServer(cmd.Context(), cfg.DataDir, "/deliveries/"+url.PathEscape(guid)+"/"+name)
				if err != nil {
					return err
				}
				if answer.Deliveries == 0 && guid != store.AllUnhandled {
					return fmt.Errorf("there is no delivery %s that could not be handled; pawl status lists them", guid)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d %s\n", guid, answer.Deliveries, done)
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	return cmd
}

// The control socket lets commands on this machine ask a running server to do something. It stands in the
// folder that the server has locked, and only its user can open it: that is all that says who may.
const (
	controlSocket = "control.sock"
	controlTime   = 30 * time.Second // for one request
)

// maxSocketPath is how long a Unix socket's path may be everywhere; Linux takes 107 bytes.
const maxSocketPath = 100

// socketPath is the path of a folder's socket; where it is too long it leads through the open folder.
func socketPath(dir *os.File) string {
	path := filepath.Join(dir.Name(), controlSocket)
	if len(path) > maxSocketPath {
		path = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), controlSocket)
	}
	return path
}

// listenControl opens the control socket. One that a killed server left is in the
// way of nobody else, since this process holds the folder.
func (n *node) listenControl() error {
	dir, err := os.Open(n.data.dir)
	if err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	n.controlDir = dir
	if err := os.Remove(filepath.Join(n.data.dir, controlSocket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data_dir: %w", err)
	}
	mask := unix.Umask(0o077) // a socket has its mode from its first moment on
	l, err := net.Listen("unix", socketPath(dir))
	unix.Umask(mask)
	if err != nil {
		return fmt.Errorf("data_dir: %w (its file system must allow Unix sockets)", err)
	}
	n.control = &http.Server{Handler: n.commands(), ReadTimeout: controlTime, WriteTimeout: controlTime}
	n.background.Go(func() {
		if err := n.control.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			n.log.Error().Err(err).Msg("the control socket answers no more")
		}
	})
	return nil
}

// closeControl ends the control socket, after which commands find no server.
func (n *node) closeControl() {
	if n.control != nil {
		n.logged(n.control.Close(), "close the control socket")
	}
	if n.controlDir != nil {
		_ = n.controlDir.Close() // open for reading
	}
}

// controlAnswer is what was done by a command, or the error.
type controlAnswer struct {
	Deliveries int    `json:"deliveries,omitempty"`
	Error      string `json:"error,omitempty"`
}

func (n *node) commands() http.Handler {
	mux := http.NewServeMux()
	for name, decide := range map[string]func(ctx context.Context, guid string) (int, error){
		"retry": n.store.RetryDelivery, "dismiss": n.store.DismissDelivery,
	} {
		mux.HandleFunc("POST /deliveries/{guid}/"+name, func(w http.ResponseWriter, r *http.Request) {
			guid := r.PathValue("guid")
			changed, err := decide(r.Context(), guid)
			n.log.Info().Str("delivery", guid).Int("deliveries", changed).Err(err).Msg("the operator's " + name)
			answer := controlAnswer{Deliveries: changed}
			if err != nil {
				answer.Error = err.Error()
				w.WriteHeader(http.StatusInternalServerError)
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				n.log.Warn().Err(err).Msg("a command got no answer")
			}
		})
	}
	return mux
}

// askServer sends a command to the first server that runs on this data directory.
func askServer(ctx context.Context, root, path string) (answer controlAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialControl(ctx, root) },
	}}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://pawl"+path, nil)
	if err != nil {
		return answer, err
	}
	resp, err := client.Do(q)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer, fmt.Errorf("the server's answer broke off: %w", err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, fmt.Errorf("the server does not know this command (%s): is it of the same version?", resp.Status)
	}
	if answer.Error != "" {
		return answer, errors.New(strings.TrimSpace(answer.Error))
	}
	return answer, nil
}

// dialControl connects to the first server of a data directory that answers.
func dialControl(ctx context.Context, root string) (net.Conn, error) {
	for i := range maxNodes {
		dir, err := os.Open(folder(root, i))
		if err != nil {
			continue
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(dir))
		_ = dir.Close() // open for reading
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("%w; run this as the user that the server runs as", err)
		}
	}
	return nil, fmt.Errorf("no server answers in data_dir %s; start pawl serve, or run this on the machine of one", root)
}
