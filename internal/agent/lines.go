package agent

import (
	"bufio"
	"errors"
	"io"
)

// maxLine is how much of a line is parsed. The longest line in the recorded
// runs has 335 kB; what decides a line stands in its first bytes.
const maxLine = 1 << 20

// readLines calls visit with each line of r without its line ending. A line
// longer than maxLine is given as far as that, once. The slice is valid only
// during the call. The last line needs no line ending. Memory does not grow
// with the input.
func readLines(r io.Reader, visit func(line []byte)) error {
	b := bufio.NewReaderSize(gulps{r}, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		if len(line) > 0 {
			visit(trimLineEnd(line))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// gulp is how much is read at once: little enough that the bytes are still in
// the processor's cache when they are parsed.
const gulp = 128 << 10

// gulps reads no more than a gulp at once.
type gulps struct{ io.Reader }

func (g gulps) Read(p []byte) (int, error) { return g.Reader.Read(p[:min(len(p), gulp)]) }

func trimLineEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
