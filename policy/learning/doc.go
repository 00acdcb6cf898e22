// Package learning grades attempts and chooses a backend by the grades. It is pure: rows and a time go in; rewards,
// arms and a choice come out. Randomness comes from a seed.
//
// Each attempt is a row of signals. Valid signals make a reward, and rewards make each backend's posterior. A missing
// signal changes nothing.
//
//	reward.go      sources with their trust; how signals make a grade
//	signals.go     each signal's value
//	validity.go    the order of rows; broken rules
//	checks.go      implausible values; which grades become rewards
//	health.go      sources that repeat a value or fail; Health
//	agreement.go   agreement with people and the verifier
//	posterior.go   discounted rewards of an arm
//	choose.go      Thompson sampling and exploration
//	task.go        a task's kind and size
//	recoveries.go  first tries and recoveries by week
//
// lab/worlds tests it in simulated worlds.
package learning
