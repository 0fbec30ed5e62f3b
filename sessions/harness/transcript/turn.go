package transcript

import "the-loop/sessions"

// TurnParser collects messages from the lines of a growing file. A text of which only a later line says whether it ends the
// turn is pending: when none comes, reading starts at its line the next time.
type TurnParser struct {
	Turn     sessions.Turn
	Messages []sessions.AgentMessage
	Pending  []sessions.AgentMessage

	offset        int64 // of the next line
	pendingOffset int64 // of the first pending line; -1: none is
}

// NewTurnParser returns a parser of the lines from an offset on.
func NewTurnParser(turn sessions.Turn, offset int64) TurnParser {
	return TurnParser{Turn: turn, offset: offset, pendingOffset: -1}
}

// Next counts a line and returns its offset.
func (p *TurnParser) Next(line []byte) int64 {
	start := p.offset
	p.offset += int64(len(line)) + 1
	return start
}

// ReadOn returns the offset to read on from after the file was parsed to its end.
func (p *TurnParser) ReadOn(end int64) int64 {
	if p.pendingOffset >= 0 {
		return p.pendingOffset
	}
	return end
}

// AddPending makes a text pending; start is the offset of its line.
func (p *TurnParser) AddPending(m sessions.AgentMessage, start int64) {
	if m.Text == "" {
		return
	}
	if p.Pending = append(p.Pending, m); p.pendingOffset < 0 {
		p.pendingOffset = start
	}
}

// FlushPending adds the pending texts to the messages, now that it is known whether they end the turn.
func (p *TurnParser) FlushPending(final bool) {
	for _, m := range p.Pending {
		m.Final = final
		p.Messages = append(p.Messages, m)
	}
	p.Pending, p.pendingOffset = nil, -1
}
