package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// The exam is the contract of thread.Store. SQLite and PostgreSQL take the same one.
func TestEveryDatabasePassesTheExam(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		file := func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "pawl.db") }
		exam(t, file, file)
	})
	t.Run("postgres", func(t *testing.T) {
		server := startPostgres(t)
		exam(t, server.newDatabase, server.emptyDatabase)
	})
}

// question is one test of the exam.
type question struct {
	name string
	ask  func(*testing.T, string)
}

// exam asks every question, each on its own new database. The function address makes one that may already have Pawl's
// tables; empty makes one without tables.
func exam(t *testing.T, address, empty func(testing.TB) string) {
	ask := func(questions []question, address func(testing.TB) string) {
		for _, q := range questions {
			t.Run(q.name, func(t *testing.T) {
				dsn := address(t)
				if _, isFile := cutSQLite(dsn); isFile {
					t.Parallel() // PostgreSQL accepts only 100 connections
				}
				q.ask(t, dsn)
			})
		}
	}
	ask(questions(), address)
	ask(questionsToEmptyDatabase(), empty)
}

func questionsToEmptyDatabase() []question {
	return []question{
		{"ReadingStoreDoesNotWrite", readingStoreDoesNotWrite},
		{"DatabaseOfAnotherProgramIsRefused", databaseOfAnotherProgramIsRefused},
	}
}

func questions() []question {
	return []question{
		{"SeqIsGaplessUnderConcurrentAppends", seqIsGaplessUnderConcurrentAppends},
		{"ADatabaseOfTheFirstSchemaIsMigrated", aDatabaseOfTheFirstSchemaIsMigrated},
		{"UserRequestsAreDispatchedFirst", userRequestsAreDispatchedFirst},
		{"ThreadsWithCommandsAreClaimedFirst", threadsWithCommandsAreClaimedFirst},
		{"DueRowsAreReadInIndexOrder", dueRowsAreReadInIndexOrder},
		{"ARepeatedKeyIsNotAppendedAgain", aRepeatedKeyIsNotAppendedAgain},
		{"EventsComeBackAsTheyWereAppended", eventsComeBackAsTheyWereAppended},
		{"ConcurrentAttemptsStayWithinTheLimit", concurrentAttemptsStayWithinTheLimit},
		{"UsageIsCountedAtEachLevel", usageIsCountedAtEachLevel},
		{"UsageIsCountedByDay", usageIsCountedByDay},
		{"ContinuedAttemptCountsFromItsContinuation", continuedAttemptCountsFromItsContinuation},
		{"AnAliasBelongsToItsThread", anAliasBelongsToItsThread},
		{"OnlyOneHoldsALease", onlyOneHoldsALease},
		{"ALostLeaseCanAppendNothing", aLostLeaseCanAppendNothing},
		{"UntakenExpiredLeaseIsRenewed", untakenExpiredLeaseIsRenewed},
		{"BreakersCountEveryUpdate", breakersCountEveryUpdate},
		{"ClosingABreakerLogsAndWakes", closingABreakerLogsAndWakes},
		{"CooldownsEnd", cooldownsEnd},
		{"WindowsKeepNewestReadingAndAllUsage", windowsKeepNewestReadingAndAllUsage},
		{"DamagedStateIsReadAndReplaced", damagedStateIsReadAndReplaced},
		{"DamagedCooldownLastsUntilACommand", damagedCooldownLastsUntilACommand},
		{"WindowsAreBoundedAndMayBeUnreadable", windowsAreBoundedAndMayBeUnreadable},
		{"ClosingABreakerForgetsTheWindows", closingABreakerForgetsTheWindows},
		{"QuotaGivenBackWakesWaitingThreads", quotaGivenBackWakesWaitingThreads},
		{"ReadingFromTheFutureIsReplaced", readingFromTheFutureIsReplaced},
		{"AGradeReplacesTheOneBefore", aGradeReplacesTheOneBefore},
		{"TheNewestGradesComeOldestFirst", theNewestGradesComeOldestFirst},
		{"SharedBlobsCountEveryUpdate", sharedBlobsCountEveryUpdate},
		{"SharedBlobsAreDatedByTheDatabasesClock", sharedBlobsAreDatedByTheDatabasesClock},
		{"OneOfManyAcquiresTheProbe", oneOfManyAcquiresTheProbe},
		{"DeadHoldersProbeIsFree", deadHoldersProbeIsFree},
		{"RunningAttemptsAreCountedByAccount", runningAttemptsAreCountedByAccount},
		{"ProbesAreUnlimitedWithoutALimit", probesAreUnlimitedWithoutALimit},
		{"ThreadsListsActiveThreads", threadsListsActiveThreads},
		{"AWakeUpIsQueuedOnce", aWakeUpIsQueuedOnce},
		{"ThreadsAreClaimedInWakeUpOrder", threadsAreClaimedInWakeUpOrder},
		{"AThreadThatWaitedAndWasWokenIsClaimedOnce", aThreadThatWaitedAndWasWokenIsClaimedOnce},
		{"AThreadIsClaimedOnce", aThreadIsClaimedOnce},
		{"ReleaseMakesWokenThreadDue", releaseMakesWokenThreadDue},
		{"AWakeTimeIsStored", aWakeTimeIsStored},
		{"FailedStepIsRetried", failedStepIsRetried},
		{"AFailureKeepsTheWait", aFailureKeepsTheWait},
		{"FailuresInARowAreCounted", failuresInARowAreCounted},
		{"InterruptedStepIsFreeAtOnce", interruptedStepIsFreeAtOnce},
		{"NoteOutlivesItsWriter", noteOutlivesItsWriter},
		{"DeliveriesAreStoredOnce", deliveriesAreStoredOnce},
		{"UnreadablePayloadStaysDue", unreadablePayloadStaysDue},
		{"RefusedDeliveryIsFreshLater", refusedDeliveryIsFreshLater},
		{"APostponedDeliveryIsDueAtItsTime", aPostponedDeliveryIsDueAtItsTime},
		{"StoredGUIDsAreKnown", storedGUIDsAreKnown},
		{"UntriedDeliveriesAreCounted", untriedDeliveriesAreCounted},
		{"GivenUpDeliveriesWaitForTheOperator", givenUpDeliveriesWaitForTheOperator},
		{"PruneKeepsGUIDsThirtyDays", pruneKeepsGUIDsThirtyDays},
		{"FinishedThreadsAreForgotten", finishedThreadsAreForgotten},
		{"CleaningUsesSmallTransactions", cleaningUsesSmallTransactions},
		{"FailedDeliveriesAreRetriedWithBackoff", failedDeliveriesAreRetriedWithBackoff},
		{"SweepWakesLostThreads", sweepWakesLostThreads},
		{"AKilledNodesThreadIsTakenOverWithin35Seconds", aKilledNodesThreadIsTakenOverWithin35Seconds},
		{"ClaimedDeliveryIsExclusive", claimedDeliveryIsExclusive},
		{"ADutyIsDoneByOneNode", aDutyIsDoneByOneNode},
		{"DutySurvivesAClockThatWasAhead", dutySurvivesAClockThatWasAhead},
		{"StatsCount", statsCount},
		{"ANewerSchemaIsRefused", aNewerSchemaIsRefused},
		{"ASchemaFromBeforeTheFirstReleaseIsRefused", aSchemaFromBeforeTheFirstReleaseIsRefused},
		{"AWakeUpDuringAStepLeadsToOneMore", aWakeUpDuringAStepLeadsToOneMore},
		{"AWakeUpAfterAStepLeadsToOneMore", aWakeUpAfterAStepLeadsToOneMore},
		{"NoWakeUpIsLostUnderLoad", noWakeUpIsLostUnderLoad},
		{"KilledStepIsTakenOver", killedStepIsTakenOver},
		{"InterruptedStepContinuesAfterStart", interruptedStepContinuesAfterStart},
		{"DeliveriesAreHandled", deliveriesAreHandled},
	}
}

// clock is a time under the test's control.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	moved func(time.Time) // sets the clock of a database that has its own
}

func newClock() *clock {
	return &clock{now: time.Now().Truncate(time.Microsecond), moved: func(time.Time) {}}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.moved(c.now)
}

// recorder is a queue that counts wake-ups and collects deliveries.
type recorder struct {
	mu         sync.Mutex
	wakes      int
	deliveries []string
}

func (r *recorder) Committed(threads bool, deliveries []thread.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if threads {
		r.wakes++
	}
	for _, d := range deliveries {
		r.deliveries = append(r.deliveries, d.GUID)
	}
}

func (r *recorder) take() (wakes int, deliveries []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wakes, deliveries = r.wakes, r.deliveries
	r.wakes, r.deliveries = 0, nil
	return wakes, deliveries
}

// wantWakes checks the number of wake-ups since the last take.
func wantWakes(t *testing.T, r *recorder, want int) {
	t.Helper()
	if got, _ := r.take(); got != want {
		t.Errorf("the queue was woken %d times, want %d", got, want)
	}
}

// wantDue checks which threads, by number, a claim would find now.
func wantDue(t *testing.T, s *store.Store, want ...int) {
	t.Helper()
	if diff := cmp.Diff(want, must(s.Due(t.Context()))(t)); diff != "" {
		t.Errorf("due threads (-want +got)\n%s", diff)
	}
}

// claimed claims all due deliveries and returns their number.
func claimed(t *testing.T, s *store.Store) int {
	t.Helper()
	return len(must(s.ClaimDeliveries(t.Context(), 1000))(t))
}

// open opens a store with a recorder and a clock, and closes it after the test.
func open(t testing.TB, dsn string) (*store.Store, *recorder, *clock) {
	t.Helper()
	c := newClock()
	if _, isFile := cutSQLite(dsn); !isFile {
		ownClock(t, dsn, c)
	}
	s, err := store.Open(t.Context(), dsn, store.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	r := &recorder{}
	s.UseQueue(r)
	return s, r, c
}

// ownClock gives a PostgreSQL database the test's clock: schema test precedes pg_catalog in the search path.
func ownClock(t testing.TB, dsn string, c *clock) {
	t.Helper()
	db := rawDB(t, dsn)
	must(db.Exec(`CREATE SCHEMA IF NOT EXISTS test;
		CREATE TABLE IF NOT EXISTS test.clock (now BIGINT NOT NULL);
		CREATE OR REPLACE FUNCTION test.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS $$ SELECT to_timestamp(0) + now * interval '1 microsecond' FROM test.clock $$;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, test, pg_catalog', current_database()); END $$`))(t)
	c.moved = func(now time.Time) {
		must(db.Exec(fmt.Sprintf("DELETE FROM test.clock; INSERT INTO test.clock VALUES (%d)", now.UnixMicro())))(t)
	}
	c.moved(c.now)
}

func issue(n int) thread.ID { return thread.ID{Owner: "octo", Name: "cat", Number: n} }

func event(key string, data any) thread.NewEvent {
	return thread.NewEvent{Key: key, Kind: thread.KindFeedback, At: time.Now(), Data: data}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rawDB opens the database without the store, to inspect or damage it.
func rawDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if path, ok := cutSQLite(dsn); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, dsn)
	check(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func cutSQLite(dsn string) (string, bool) {
	const scheme = "sqlite:"
	if len(dsn) > len(scheme) && dsn[:len(scheme)] == scheme {
		return dsn[len(scheme):], true
	}
	return "", false
}

var errTest = errors.New("the disk is on fire")
