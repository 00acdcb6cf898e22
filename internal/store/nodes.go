package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// presenceLock is the first key of the advisory lock that each node holds; the second is a hash of its name. The number
// is "node" in ASCII. The lock is shared, so that two names with one hash do not block each other.
const presenceLock = 0x6e6f6465

// Shared reports whether other nodes may use the database.
func (s *database) Shared() bool { return s.postgres }

// watchesNodes reports whether nodes hold presence locks. A pooler would lose them between transactions.
func (s *database) watchesNodes() bool { return s.postgres && !s.pooled }

// present takes the node's presence lock on a connection, then tells the other nodes to watch the lock. PostgreSQL
// releases the lock when the connection ends, such as after a kill.
func (s *Store) present(ctx context.Context, conn *pgx.Conn, node string) (err error) {
	defer s.wrap(&err, "list node %s", node)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1, hashtext($2))", presenceLock, node); err != nil {
		return err
	}
	s.holdsLock.Store(true)
	return s.Beat(ctx, node)
}

// Beat shows the other nodes that this one runs; call it every 10 s. SQLite has no other nodes.
func (s *Store) Beat(ctx context.Context, node string) (err error) {
	defer s.wrap(&err, "list node %s", node)
	if !s.postgres {
		return nil
	}
	state, err := json.Marshal(s.self)
	if err != nil {
		return err
	}
	present := 0 // Beat never resets it: a listed node without its lock counts as absent
	if s.holdsLock.Load() {
		present = 1
	}
	return s.write(ctx, func(tx *txn) error {
		return tx.exec(ctx, `INSERT INTO nodes (name, state, present, seen_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at,
				present = CASE WHEN nodes.present > excluded.present THEN nodes.present ELSE excluded.present END`,
			node, string(state), present, micros(tx.now))
	})
}

// Nodes returns the other nodes that were seen within a lease's time; none with SQLite.
func (s *Store) Nodes(ctx context.Context, except string) (nodes []policy.Node, err error) {
	defer s.wrap(&err, "list the nodes")
	if !s.postgres {
		return nil, nil
	}
	rows, err := s.r.QueryContext(ctx, "SELECT state FROM nodes WHERE name <> $1 AND seen_at > $2 ORDER BY name",
		except, micros(s.Now().Add(-thread.LeaseTime)))
	return list(rows, err, func(scan func(...any) error) (n policy.Node, err error) {
		var state []byte
		if err := scan(&state); err != nil {
			return n, err
		}
		if json.Unmarshal(state, &n) != nil {
			n = policy.Node{} // a node with an unreadable row serves nothing
		}
		return n, nil
	})
}

// Waiting counts the attempts that wait for a node or a slot, by place.
func (s *Store) Waiting(ctx context.Context) (byPlace map[string]int, err error) {
	defer s.wrap(&err, "count waiting attempts")
	byPlace = map[string]int{policy.PlaceOf(nil): 0}
	rows, err := s.r.QueryContext(ctx, "SELECT place, count(*) FROM threads WHERE place <> '' AND place NOT LIKE $1 AND lease_until = 0 GROUP BY place", policy.InFolder("%"))
	return byPlace, each(rows, err, func(scan func(...any) error) error {
		var place string
		var n int
		err := scan(&place, &n)
		byPlace[place] = n
		return err
	})
}

// served restricts a query with arguments to the threads that this node may take. It is empty if the node may take all.
// Times are arguments: PostgreSQL's driver prepares each new text.
func (s *database) served(args ...any) (clause string, all []any) {
	if s.self == nil {
		return "", args
	}
	places := []string{"''"}
	for _, p := range s.self.Places() {
		places = append(places, "'"+strings.ReplaceAll(p, "'", "''")+"'")
	}
	args = append(args, micros(s.Now().Add(-lookAnyway)))
	late := fmt.Sprintf("wake_at BETWEEN 1 AND $%d", len(args))
	if s.self.Agents {
		args = append(args, micros(s.Now().Add(-s.prefer)))
		late += fmt.Sprintf(" OR place LIKE '%s%%' AND wake_at BETWEEN 1 AND $%d", policy.InFolder(""), len(args))
	}
	return fmt.Sprintf(" AND (place IN (%s) OR %s)", strings.Join(places, ", "), late), args
}

// WarmFolder returns the data folder in which the last attempt of a thread's repository began; empty if unknown.
func (s *Store) WarmFolder(ctx context.Context, t thread.ID) (folder string, err error) {
	defer s.wrap(&err, "find the caches of %s", t.Repo())
	if !s.postgres {
		return "", nil
	}
	err = s.r.QueryRowContext(ctx, "SELECT folder FROM warm_folders WHERE owner = $1 AND name = $2", t.Owner, t.Name).Scan(&folder)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return folder, err
}

// SetWarmFolder stores that an attempt of a thread's repository begins in a data folder.
func (s *Store) SetWarmFolder(ctx context.Context, t thread.ID, folder string) (err error) {
	defer s.wrap(&err, "store where the caches of %s are", t.Repo())
	if !s.postgres {
		return nil
	}
	return s.write(ctx, func(tx *txn) error {
		return tx.exec(ctx, `INSERT INTO warm_folders (owner, name, folder) VALUES ($1, $2, $3)
			ON CONFLICT (owner, name) DO UPDATE SET folder = excluded.folder`, t.Owner, t.Name, folder)
	})
}

// lookAnyway is how long a thread waits for a node that serves its place before any node looks again: the repository
// may ask for other labels now, or the node may be gone. Our choice.
const lookAnyway = 2 * time.Minute

// longGone is how long a node without a presence lock stays listed after its last beat.
const longGone = 24 * time.Hour

// Absent returns the listed nodes whose presence lock and connections are gone, by name. A live node that lost only the
// lock's connection still has others. It returns none with SQLite or through a pooler.
func (s *Store) Absent(ctx context.Context) (names []string, err error) {
	defer s.wrap(&err, "look for absent nodes")
	if !s.watchesNodes() {
		return nil, nil
	}
	rows, err := s.r.QueryContext(ctx, `SELECT name FROM nodes WHERE present = 1 AND NOT EXISTS (
			SELECT 1 FROM pg_locks
			WHERE locktype = 'advisory' AND classid = $1::bigint::oid AND objsubid = 2 AND granted
			AND objid = (hashtext(name)::bigint & 4294967295)::oid
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND NOT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'pawl ' || right(name, $2))
		ORDER BY name`, presenceLock, connectionNameKeeps)
	return list(rows, err, func(scan func(...any) error) (name string, err error) {
		return name, scan(&name)
	})
}

// Leave removes a stopped or dead node, makes its leased threads due, and returns their number. A live holder
// continues with Renew, unless another node has taken the thread. Any node may look at the threads that wait for a
// node, so that their reasons name the nodes that are left.
func (s *Store) Leave(ctx context.Context, node string) (freed int, err error) {
	defer s.wrap(&err, "remove node %s", node)
	if !s.postgres {
		return 0, nil
	}
	err = s.write(ctx, func(tx *txn) error {
		query := freeLeases + ` WHERE id IN (SELECT id FROM threads
			WHERE lease_until > 0 AND lease_owner = $2 FOR UPDATE SKIP LOCKED)`
		if freed, err = tx.change(ctx, query, micros(tx.now), node); err != nil {
			return err
		}
		waiting, err := tx.change(ctx, "UPDATE threads SET place = '' WHERE place <> ''")
		if err != nil {
			return err
		}
		tx.due = freed+waiting > 0
		return tx.exec(ctx, "DELETE FROM nodes WHERE name = $1 OR seen_at < $2", node, micros(tx.now.Add(-longGone)))
	})
	return freed, err
}
