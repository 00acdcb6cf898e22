package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Threads is the part of the store that Nodes uses.
type Threads interface {
	// Write runs fn in a transaction. now is the database's time.
	Write(ctx context.Context, fn func(tx *sql.Tx, now time.Time) error) error
	// Free makes a node's leased threads due and returns their number. It also lets any node look at threads that wait
	// for a node, so that their reasons name the remaining nodes. fn runs in the same transaction.
	Free(ctx context.Context, node string, fn func(tx *sql.Tx, now time.Time) error) (freed int, err error)
}

// Nodes are the nodes that use a database.
type Nodes struct {
	db      *DB
	threads Threads
	self    *policy.Node
	// holdsLock is set while a connection of Listen holds this node's presence lock.
	holdsLock atomic.Bool
}

// Nodes returns the nodes that use the database. self is the node that asks, or nil.
func (db *DB) Nodes(t Threads, self *policy.Node) *Nodes {
	return &Nodes{db: db, threads: t, self: self}
}

// presenceLock is the first key of the advisory lock that each node holds; the second is a hash of its name. The number
// is "node" in ASCII. The lock is shared, so that names with the same hash do not block each other.
const presenceLock = 0x6e6f6465

// wakeChannel notifies nodes of due threads.
const wakeChannel = "pawl_due"

// listenAgain is how long Listen waits before it reconnects. Other nodes count an absent node as dead after two seconds.
const listenAgain = time.Second / 2

// Notify wakes all nodes after the commit.
func (*DB) Notify(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "SELECT pg_notify($1, '')", wakeChannel); err != nil {
		return fmt.Errorf("notify the other nodes: %w", err)
	}
	return nil
}

// Listen calls wake whenever a node made threads due, until ctx ends. Its connection also shows others that this node
// runs; see Absent. Through a pooler, which would lose both between transactions, it returns at once.
func (n *Nodes) Listen(ctx context.Context, node string, wake func()) {
	for !n.db.pooled && ctx.Err() == nil {
		_ = n.listen(ctx, node, wake) // Listen retries, and polls continue
		_ = wait.For(ctx, listenAgain)
	}
}

func (n *Nodes) listen(ctx context.Context, node string, wake func()) error {
	conn, err := pgx.ConnectConfig(ctx, n.db.config.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	defer n.holdsLock.Store(false)
	if _, err := conn.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	if err := n.present(ctx, conn, node); err != nil {
		return err
	}
	for {
		wake() // covers earlier changes
		if err := awaitWake(ctx, conn); err != nil {
			return err
		}
	}
}

// present takes the node's presence lock on a connection, then tells the other nodes to watch the lock. PostgreSQL
// releases the lock when the connection ends, such as after a kill.
func (n *Nodes) present(ctx context.Context, conn *pgx.Conn, node string) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1, hashtext($2))", presenceLock, node); err != nil {
		return err
	}
	n.holdsLock.Store(true)
	return n.Beat(ctx, node)
}

// awaitWake waits for a notification. It returns nil early if the connection was silent for statementTime but works.
func awaitWake(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := conn.WaitForNotification(waiting)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return ping(ctx, conn)
	}
	return err
}

// Beat shows the other nodes that this one runs; call it every 10 s.
func (n *Nodes) Beat(ctx context.Context, node string) error {
	state, err := json.Marshal(n.self)
	if err != nil {
		return err
	}
	present := 0 // Beat never resets it: a listed node without its lock counts as absent
	if n.holdsLock.Load() {
		present = 1
	}
	err = n.threads.Write(ctx, func(tx *sql.Tx, now time.Time) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO nodes (name, state, present, seen_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at,
				present = CASE WHEN nodes.present > excluded.present THEN nodes.present ELSE excluded.present END`,
			node, string(state), present, now.UnixMicro())
		return err
	})
	return failed(err, "list node %s", node)
}

// Nodes returns the other nodes that were seen within thread.LeaseTime.
func (n *Nodes) Nodes(ctx context.Context, except string) (nodes []policy.Node, err error) {
	states, err := n.texts(ctx, "SELECT state FROM nodes WHERE name <> $1 AND seen_at > $2 ORDER BY name",
		except, n.db.Now().Add(-thread.LeaseTime).UnixMicro())
	for _, state := range states {
		var node policy.Node
		if json.Unmarshal([]byte(state), &node) != nil {
			node = policy.Node{} // a node with an unreadable row serves nothing
		}
		nodes = append(nodes, node)
	}
	return nodes, failed(err, "list the nodes")
}

// WarmFolder returns the data folder in which the last attempt on a thread's repository began; empty if unknown.
func (n *Nodes) WarmFolder(ctx context.Context, t thread.ID) (folder string, err error) {
	err = n.db.QueryRowContext(ctx, "SELECT folder FROM warm_folders WHERE owner = $1 AND name = $2", t.Owner, t.Name).Scan(&folder)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return folder, failed(err, "find the caches of %s", t.Repo())
}

// SetWarmFolder stores the data folder in which an attempt on a thread's repository begins.
func (n *Nodes) SetWarmFolder(ctx context.Context, t thread.ID, folder string) error {
	err := n.threads.Write(ctx, func(tx *sql.Tx, _ time.Time) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO warm_folders (owner, name, folder) VALUES ($1, $2, $3)
			ON CONFLICT (owner, name) DO UPDATE SET folder = excluded.folder`, t.Owner, t.Name, folder)
		return err
	})
	return failed(err, "store where the caches of %s are", t.Repo())
}

// longGone is how long a node without a presence lock stays listed after its last beat.
const longGone = 24 * time.Hour

// Absent returns the listed nodes whose presence lock and connections are gone, by name. A live node that lost only the
// lock's connection still has others. Through a pooler no node holds a lock, and Absent returns none.
func (n *Nodes) Absent(ctx context.Context) (names []string, err error) {
	if n.db.pooled {
		return nil, nil
	}
	names, err = n.texts(ctx, `SELECT name FROM nodes WHERE present = 1 AND NOT EXISTS (
			SELECT 1 FROM pg_locks
			WHERE locktype = 'advisory' AND classid = $1::bigint::oid AND objsubid = 2 AND granted
			AND objid = (hashtext(name)::bigint & 4294967295)::oid
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND NOT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'pawl ' || right(name, $2))
		ORDER BY name`, presenceLock, connectionNameKeeps)
	return names, failed(err, "look for absent nodes")
}

// Leave removes a stopped or dead node, makes its leased threads due, and returns their number. A live holder
// continues with Renew, unless another node has taken the thread.
func (n *Nodes) Leave(ctx context.Context, node string) (freed int, err error) {
	freed, err = n.threads.Free(ctx, node, func(tx *sql.Tx, now time.Time) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM nodes WHERE name = $1 OR seen_at < $2", node, now.Add(-longGone).UnixMicro())
		return err
	})
	return freed, failed(err, "remove node %s", node)
}

// texts reads a query's only column.
func (n *Nodes) texts(ctx context.Context, query string, args ...any) (all []string, err error) {
	rows, err := n.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// failed adds the operation to an error.
func failed(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
