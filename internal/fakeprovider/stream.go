package fakeprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// settle is how long a cut waits, so that the client has read what came before:
// a reset throws away what is still on its way.
const settle = 150 * time.Millisecond

// stream writes server-sent events. Once the client is gone it writes nothing.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context // of the request; a stream lives no longer
	failed  bool
}

func (s *stream) begin(header map[string]string) {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	for key, value := range header {
		s.w.Header().Set(key, value)
	}
	s.w.WriteHeader(http.StatusOK)
}

// event sends one event; an empty name sends the data alone.
func (s *stream) event(name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		s.failed = true
		return
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.write(fmt.Sprintf("%sdata: %s\n\n", name, encoded))
}

func (s *stream) write(text string) {
	if s.failed {
		return
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		s.failed = true
		return
	}
	s.failed = s.control.Flush() != nil
}

// pause waits, or until the client is gone.
func (s *stream) pause(d time.Duration) {
	if d <= 0 || s.failed {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.failed = true
	}
}

// cut ends the connection: cutEOF as if the answer were over, cutRST with a
// reset.
func (s *stream) cut(how kind) {
	s.pause(settle)
	if how == cutEOF {
		return
	}
	connection, _, err := s.control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection, the next best thing
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the close below then sends a reset
	}
	_ = connection.Close()
}

// hang keeps the connection open until the client or the server ends it.
func (s *stream) hang() {
	<-s.ctx.Done()
	panic(http.ErrAbortHandler) // nothing more may be written
}
