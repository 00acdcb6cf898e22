package queue

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
)

// bell tells River's producers of this process that jobs were committed, in the
// place of the database's notifications, which neither of River's database/sql
// drivers can receive. Without it the producers would have to poll every few
// milliseconds: one poll costs 0.5 ms on SQLite (most of it parsing), so polling
// two queues every 25 ms took 6 % of a CPU and still cost 17 ms a job. With it
// a job starts 1 ms after its commit (99 %: 6 ms), an idle queue takes 0.7 % of a
// CPU, and a slow poll is left for jobs of other nodes and scheduled ones.
//
// A ring that meets an unanswered one is dropped: the fetch that follows sees
// both.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// belled is a driver whose listener is the bell. It depends on an interface of
// River that may change with its version, which go.mod pins.
type belled struct {
	riverdriver.Driver[*sql.Tx]
	bell bell
}

// SupportsListener makes River ask for the listener.
func (belled) SupportsListener() bool { return true }

// SupportsListenNotify keeps River from notifying through the database.
func (belled) SupportsListenNotify() bool { return false }

// GetListener returns the bell.
func (d belled) GetListener(p *riverdriver.GetListenenerParams) riverdriver.Listener {
	return listener{d.bell, p.Schema}
}

// listener is the bell as River sees it: always connected, and deaf to all
// topics but new jobs.
type listener struct {
	bell   bell
	schema string
}

func (listener) Close(context.Context) error            { return nil }
func (listener) Connect(context.Context) error          { return nil }
func (listener) Listen(context.Context, string) error   { return nil }
func (listener) Ping(context.Context) error             { return nil }
func (l listener) Schema() string                       { return l.schema }
func (listener) SetAfterConnectExec(string)             {}
func (listener) Unlisten(context.Context, string) error { return nil }

// topicInsert and the payload are what River's own drivers send for new jobs.
const topicInsert = "river_insert"

// WaitForNotification returns when the bell rings or ctx ends.
func (l listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.bell:
		return &riverdriver.Notification{Topic: topicInsert, Payload: fmt.Sprintf(`{"queue": %q}`, stepQueue)}, nil
	}
}
