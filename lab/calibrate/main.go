package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// resamples is the number of bootstrap resamples. 50 of them lie below a 95 % interval, and 50 above it.
const resamples = 2000

const usage = `usage: calibrate [flags] FILE
       calibrate -export -config pawl.yml

Shows for each view (failure, revision, diff) the true and false positive rate of the threshold in use and
of the recommended one, the area under the ROC curve, and the curve. FILE holds one JSON object a line, may be
compressed with gzip, and - reads standard input:

  {"view": "failure", "label": "same", "group": "task-1", "a": "…", "b": "…"}

`

// The exit codes are the same as pawl's.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type options struct {
	config    string
	threshold float64 // 0 means the configuration's threshold
	seed      uint64
	svg       string
	json      bool
	export    bool
	file      string
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	o, err := parseFlags(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintln(errs, "calibrate:", err)
		return exitUsage
	}
	do := o.measure
	if o.export {
		do = o.exportRetries
	}
	if err := do(ctx, in, out); err != nil {
		fmt.Fprintln(errs, "calibrate:", err)
		return exitFailed
	}
	return exitDone
}

func parseFlags(args []string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("calibrate", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprint(errs, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.config, "config", "", "a server's configuration, for its threshold (default: the published one)")
	flags.Float64Var(&o.threshold, "threshold", 0, "the threshold in use, instead of policy.stagnation.similarity")
	flags.Uint64Var(&o.seed, "seed", 1, "the seed of the resampling")
	flags.StringVar(&o.svg, "svg", "", "write the ROC curves to this file")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	flags.BoolVar(&o.export, "export", false, "print the retries in the database of -config as labelled pairs, instead of measuring")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "threshold" })
	if o.export {
		return o, o.checkExport(flags.NArg())
	}
	if flags.NArg() != 1 {
		return o, errors.New("name one file of labelled pairs; - reads standard input")
	}
	o.file = flags.Arg(0)
	if given && !validThreshold(o.threshold) {
		return o, fmt.Errorf("-threshold %v: use a number above 0 and up to 1, such as 0.85", o.threshold)
	}
	return o, nil
}

// checkExport refuses arguments that -export cannot use.
func (o options) checkExport(files int) error {
	if files > 0 || o.config == "" {
		return errors.New("-export needs -config and no file; it prints the pairs")
	}
	return nil
}

// validThreshold reports whether t is in (0, 1]; it is false for NaN.
func validThreshold(t float64) bool { return t > 0 && t <= 1 }

func (o options) measure(_ context.Context, in io.Reader, out io.Writer) error {
	threshold, err := o.inUse()
	if err != nil {
		return err
	}
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return fmt.Errorf("open the pairs: %w", err)
		}
		defer f.Close()
		in = f
	}
	r, err := Measure(Read(in), Options{Threshold: threshold, Seed: o.seed, Resamples: resamples})
	if err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(r.SVG()), 0o644); err != nil {
			return fmt.Errorf("write the picture: %w", err)
		}
	}
	if o.json {
		return json.NewEncoder(out).Encode(r)
	}
	r.Text(out)
	return nil
}

// inUse returns the flag's threshold, else the configuration's, else the default.
func (o options) inUse() (float64, error) {
	if o.threshold != 0 {
		return o.threshold, nil
	}
	if o.config == "" {
		return policy.Defaults().Stagnation.Similarity, nil
	}
	cfg, err := config.LoadWithoutApp(o.config, os.LookupEnv)
	return cfg.Policy.Stagnation.Similarity, err
}
