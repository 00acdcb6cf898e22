package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// maxSpec bounds the file that pawl mcp is given, in bytes.
const maxSpec = 1 << 20

// testSpec is the file that pawl mcp is given: what run_tests does.
type testSpec struct {
	Dir      string   `json:"dir"`             // the work tree
	Commands []string `json:"commands"`        // for /bin/sh, in order, until one fails; none is allowed
	Timeout  int      `json:"timeout_seconds"` // of one call with all its commands
	MaxCalls int      `json:"max_calls"`       // of one attempt, over restarts of this server
	Journal  string   `json:"journal"`         // one line of JSON a call; see testCall
}

func mcpCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "mcp --spec FILE", Hidden: true, Args: cobra.NoArgs,
		Short: "Serve the tool run_tests to a coding agent over standard input and output",
		Long: `Serve the Model Context Protocol over standard input and output with one tool, run_tests, which runs
the repository's verify commands. Pawl has the agent start this inside the sandbox; nobody else needs it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := readTestSpec(file)
			if err != nil {
				return usageError{err}
			}
			log, err := logger(cmd.ErrOrStderr(), "info")
			if err != nil {
				return err
			}
			return serveTests(cmd.Context(), spec, cmd.InOrStdin(), cmd.OutOrStdout(), log)
		},
	}
	cmd.Flags().StringVar(&file, "spec", "", "the JSON file that says what run_tests does")
	if err := cmd.MarkFlagRequired("spec"); err != nil {
		panic(err) // the flag is one line above
	}
	return cmd
}

// readTestSpec reads and checks the file.
func readTestSpec(name string) (testSpec, error) {
	var s testSpec
	f, err := os.Open(name)
	if err != nil {
		return s, fmt.Errorf("open the spec: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSpec+1))
	if err != nil {
		return s, fmt.Errorf("read the spec: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("spec %s: %w", name, err)
	}
	switch {
	case len(b) > maxSpec:
		err = fmt.Errorf("larger than %d bytes", maxSpec)
	case !filepath.IsAbs(s.Dir):
		err = fmt.Errorf("dir %q: give the whole path of the work tree", s.Dir)
	case !filepath.IsAbs(s.Journal):
		err = fmt.Errorf("journal %q: give a whole path", s.Journal)
	case s.Timeout <= 0 || s.Timeout > 24*60*60:
		err = errors.New("timeout_seconds: use 1 to 86400")
	case s.MaxCalls <= 0:
		err = errors.New("max_calls: use a number above 0")
	}
	if err != nil {
		return s, fmt.Errorf("spec %s: %w", name, err)
	}
	return s, nil
}

// serveTests is pawl mcp: it answers until standard input ends, then kills a
// command that still runs. Standard output carries only the protocol.
func serveTests(ctx context.Context, spec testSpec, stdin io.Reader, stdout io.Writer, log zerolog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tool := newTestTool(spec, time.Now, log)
	server := mcp.NewServer(&mcp.Implementation{Name: "pawl", Title: "Pawl", Version: buildInfo().Version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{}})
	server.AddTool(tool.description(), func(call context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call, stop := context.WithCancel(call)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		return tool.call(call, req.Params.Arguments), nil
	})
	err := server.Run(ctx, &mcp.IOTransport{Reader: endingReader{stdin, cancel}, Writer: keptOpen{stdout}})
	cancel()
	tool.idle()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve run_tests: %w", err)
	}
	return nil
}

// endingReader tells when the client is gone, so that a command which takes long
// is not waited for.
type endingReader struct {
	io.Reader
	ended func()
}

func (r endingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		r.ended()
	}
	return n, err
}

// Close lets the reader be: it is the process's standard input.
func (r endingReader) Close() error { return nil }

// keptOpen is a writer whose closing is the process's affair.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }
