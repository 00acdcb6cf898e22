package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// callsAim is how many requests to GitHub's API one solved issue may cost, of an
// hourly budget of 5,000.
const callsAim = 15

// measureCalls solves two issues with one attempt each. The first one pays for
// what the server keeps afterwards, such as who the App is.
func measureCalls(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	r, err := newRig(ctx, bin, dir, "cat > /dev/null\necho two >> a.txt\necho 'a.txt has a second line now'\n", "plain", "none", "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if _, err := r.start(ctx); err != nil {
		return nil, nil, err
	}
	db, err := store.OpenReadOnly(ctx, r.database(), store.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	for _, which := range []string{"first of a new server", "next"} {
		r.world.ResetCalls()
		pulls := len(r.world.Pulls(repo))
		t, log, err := r.solve(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		state, err := solver.Fold(log)
		if err != nil {
			return nil, nil, err
		}
		if len(state.Attempts) != 1 || len(r.world.Pulls(repo)) != pulls+1 {
			return nil, nil, fmt.Errorf("%s was not solved in one attempt: %+v", t, state.Decision)
		}
		total, list := restCalls(r.world.Calls())
		rows = append(rows, row{fmt.Sprintf("GitHub API calls for one solved issue, %s", which), fmt.Sprint(total), fmt.Sprintf("≤ %d", callsAim), total <= callsAim})
		notes = append(notes, fmt.Sprintf("\nAPI calls for one solved issue, %s:", which))
		notes = append(notes, list...)
	}
	return rows, notes, nil
}

// restCalls counts the requests that are not git's and lists them by route.
func restCalls(calls map[string]int) (total int, list []string) {
	for _, route := range slices.Sorted(maps.Keys(calls)) {
		if strings.Contains(route, ".git/") {
			continue
		}
		total += calls[route]
		list = append(list, fmt.Sprintf("  %2d  %s", calls[route], route))
	}
	return total, list
}
