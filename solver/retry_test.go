package solver

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRetriesWaitUpToFiveMinutesForADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inARow := rapid.IntRange(1, 10_000).Draw(t, "in a row")
		full := retryCap
		if inARow < 10 {
			full = min(time.Second<<(inARow-1), retryCap)
		} else if inARow >= oftenTries {
			full = rareCap
		}
		wait := afterFailure(inARow)
		if wait < full/2 || wait > full {
			t.Fatalf("after %d failures the next try is in %s, want %s to %s", inARow, wait, full/2, full)
		}
	})
}

func TestFailingStepIsRetriedOftenForADay(t *testing.T) {
	sum := time.Duration(0)
	for n := 1; n < oftenTries; n++ {
		sum += afterFailure(n)
	}
	if sum < 12*time.Hour || sum > 26*time.Hour {
		t.Errorf("the retries become rare after %s", sum)
	}
}

func TestOnlyAnInterruptedStepIsRetriedAtOnce(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	broken := errors.New("GitHub is down")
	for name, c := range map[string]struct {
		given context.Context
		err   error
		retry bool
		wait  bool
	}{
		"that succeeded":           {given: t.Context()},
		"that succeeded at a stop": {given: stopped},
		"that failed":              {given: t.Context(), err: broken, retry: true, wait: true},
		"that a stop interrupted":  {given: stopped, err: broken, retry: true},
		"that timed out":           {given: late, err: context.DeadlineExceeded, retry: true, wait: true},
	} {
		t.Run("a step "+name, func(t *testing.T) {
			s := &step{pub: &publisher{}}
			retry := s.retry(c.given, c.err)
			if (retry != nil) != c.retry {
				t.Fatalf("the step has a retry: %t, want %t", retry != nil, c.retry)
			}
			if retry == nil {
				return
			}
			if wait := retry(1); (wait > 0) != c.wait {
				t.Errorf("the next try is in %s", wait)
			}
		})
	}
}
