package store

import "context"

// MaxWindows limits the stored windows of an account.
const MaxWindows = maxWindows

// Postgres reports whether the database is PostgreSQL.
func (s *Store) Postgres() bool { return s.nodes != nil }

// Setting returns PostgreSQL's value of a setting within a transaction of the store.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.write(ctx, func(tx *txn) error {
		return tx.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value)
	})
	return value, err
}

// ClaimQueries returns three queries: whether a delivery is due, the due deliveries, and the woken threads.
func (s *Store) ClaimQueries() (whether, which, threads string) {
	return anyDelivery, dueDeliveries, "SELECT " + rowColumns + " FROM threads WHERE " + woken + inTurn + " LIMIT $1"
}

// Due returns the numbers of the threads that a claim would find.
func (s *Store) Due(ctx context.Context) (numbers []int, err error) {
	rows, err := s.r.QueryContext(ctx, "SELECT number FROM threads WHERE "+woken+" OR "+waited+" ORDER BY number", micros(s.Now()))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, rows.Err()
}
