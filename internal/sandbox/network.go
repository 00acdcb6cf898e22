package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// Network gives a program its own loopback network with listeners made before the program starts.
type Network struct {
	Ports []int // on 127.0.0.1, one per listener
	// Serve receives the listeners in the order of Ports before the program begins, and must not block. The listeners
	// close when all processes have ended. Serve is not called if the program cannot start.
	Serve func([]net.Listener)
}

const (
	// InsideCommand is the first argument of the program that calls Inside.
	InsideCommand = "inside"
	// listenersTime limits the wait for listeners, which usually takes milliseconds.
	listenersTime = time.Minute
)

// UseProgram makes Start run programs through an executable that calls Inside. They get Landlock and, if requested,
// their own networks. UseProgram tests the executable once.
func (s *Sandbox) UseProgram(ctx context.Context, program string, networks bool) error {
	if s.mode == None {
		return errors.New("without a sandbox there is no network of its own")
	}
	var err error
	if s.program, err = os.Open(program); err != nil {
		return fmt.Errorf("show Pawl to the sandbox: %w", err)
	}
	s.networks = networks
	var network *Network
	if networks {
		network = &Network{Ports: []int{probePort}, Serve: func([]net.Listener) {}}
	}
	output, err := s.try(ctx, network)
	if err == nil {
		return nil
	}
	s.program.Close()
	s.program, s.networks = nil, false
	err = fmt.Errorf("%w: %w: %s: %s", ErrUnavailable, err, output, hint(output))
	if networks {
		err = fmt.Errorf("no network of its own: %w, or set sandbox.network to open, which lets agents reach every host that this machine reaches", err)
	}
	return err
}

func (s *Sandbox) Networks() bool { return s.networks }

// probePort is an arbitrary unprivileged port.
const probePort = 29400

type instructions struct {
	Own      int      // descriptor of the executable
	Pair     int      // descriptor of the socket pair; 0 without listeners
	Ports    []int    // of the listeners
	Writable []string // writable paths
}

// Inside runs as the sandbox's first program. It creates and sends the listeners, gives up writing outside the writable
// paths, and executes the program. args holds instructions as JSON, then the command line. Inside returns only if it
// fails.
func Inside(args []string) error {
	var o instructions
	if len(args) < 2 || json.Unmarshal([]byte(args[0]), &o) != nil {
		return errors.New("only Pawl itself may call inside")
	}
	unix.CloseOnExec(o.Own)
	if o.Pair != 0 {
		unix.CloseOnExec(o.Pair)
		if err := handOut(o.Pair, o.Ports); err != nil {
			return err
		}
	}
	if err := secondWall(o.Writable); err != nil {
		return err
	}
	argv := args[1:]
	err := syscall.Exec(argv[0], argv, os.Environ())
	if err == syscall.ENOEXEC { // a script without an interpreter line; execvp does the same
		err = syscall.Exec("/bin/sh", append([]string{"sh"}, argv...), os.Environ())
	}
	return fmt.Errorf("start %s: %w", argv[0], err)
}

// handOut creates the listeners and sends them through the socket pair.
func handOut(pair int, ports []int) error {
	var list []int
	for _, port := range ports {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
		file, err := l.File()
		if err != nil {
			return fmt.Errorf("listen on port %d: %w", port, err)
		}
		defer file.Close()
		list = append(list, int(file.Fd()))
	}
	if err := unix.Sendmsg(pair, []byte{1}, unix.UnixRights(list...), nil, 0); err != nil {
		return fmt.Errorf("hand the listeners out: %w", err)
	}
	if n, err := unix.Read(pair, make([]byte, 1)); n != 1 {
		return fmt.Errorf("nobody took the listeners: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// secondWall makes Landlock refuse writes that the mounts already refuse. It also blocks signals and memory access to
// bubblewrap. All rules are in one ruleset, because every ruleset forbids moves between folders unless it allows them
// (landlock(7), LANDLOCK_ACCESS_FS_REFER).
func secondWall(writable []string) error {
	walls := landlock.Config{HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped}
	return walls.BestEffort().Restrict(landlock.RODirs("/"), landlock.RWDirs(writable...).WithRefer().WithIoctlDev().IgnoreIfMissing())
}

// hand is the host's end of the socket pair, with the listeners received through it.
type hand struct {
	*Network
	pair  *net.UnixConn
	taken chan []net.Listener // receives one value
}

// throughInside makes bubblewrap start a command through Inside.
func (s *Sandbox) throughInside(command []string, spec Spec, files *passedFiles) ([]string, *hand, error) {
	if spec.Root != "" {
		if err := runnable(spec.Root, s.program.Name()); err != nil {
			return nil, nil, fmt.Errorf("%w; Pawl itself is static when it is built with CGO_ENABLED=0", err)
		}
	}
	own, err := unix.FcntlInt(s.program.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("show Pawl to the sandbox: %w", err)
	}
	program := "/proc/self/fd/" + files.add(os.NewFile(uintptr(own), "pawl"))
	o := instructions{Own: 2 + len(*files), Writable: append(slices.Clone(ownPlaces), cmp.Or(spec.DirAt, spec.Dir), cmp.Or(spec.HomeAt, spec.Home))}
	for _, f := range spec.Folders {
		o.Writable = append(o.Writable, f.To)
	}
	var h *hand
	if n := spec.Network; n != nil {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
		}
		files.add(os.NewFile(uintptr(pair[1]), "pair"))
		o.Pair, o.Ports = 2+len(*files), n.Ports
		here := os.NewFile(uintptr(pair[0]), "pair")
		defer here.Close() // the connection has its own descriptor
		conn, err := net.FileConn(here)
		if err != nil {
			return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
		}
		h = &hand{Network: n, pair: conn.(*net.UnixConn), taken: make(chan []net.Listener, 1)}
	}
	encoded, err := json.Marshal(o)
	return append([]string{program, InsideCommand, string(encoded)}, command...), h, err
}

// take receives the listeners and lets the program begin.
func (h *hand) take() {
	list, err := h.receive()
	if err == nil {
		h.Serve(list)
		_, _ = h.pair.Write([]byte{1}) // fails if Inside has exited, which the exit status shows
	}
	h.pair.Close()
	h.taken <- list
}

func (h *hand) receive() (list []net.Listener, err error) {
	_ = h.pair.SetReadDeadline(time.Now().Add(listenersTime))
	oob := make([]byte, unix.CmsgSpace(4*len(h.Ports)))
	n, oobn, _, _, err := h.pair.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil || n != 1 {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			file := os.NewFile(uintptr(fd), "listener")
			l, err := net.FileListener(file)
			file.Close()
			if err != nil {
				return list, err
			}
			list = append(list, l)
		}
	}
	if len(list) != len(h.Ports) {
		return list, fmt.Errorf("%d listeners came instead of %d", len(list), len(h.Ports))
	}
	return list, nil
}

// close releases the socket pair of a program that did not start.
func (h *hand) close() {
	if h != nil {
		h.pair.Close()
	}
}

// end closes the listeners after all processes have ended.
func (h *hand) end() {
	for _, l := range <-h.taken {
		l.Close()
	}
}
