package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
)

// logger writes JSON lines, or lines for people on a terminal.
func logger(w io.Writer, level string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	if f, ok := w.(*os.File); ok && terminal(f) {
		w = zerolog.ConsoleWriter{Out: f, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).Level(l).With().Timestamp().Logger(), nil
}

// terminal reports whether a person reads the file as it is written.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
