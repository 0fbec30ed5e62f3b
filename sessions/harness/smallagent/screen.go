package smallagent

import (
	"fmt"
	"slices"
	"strings"
)

// State is what the agent is doing, as its status line says.
type State string

// The states of the status line.
const (
	StateStarting State = "starting" // text lands in the box, Enter is lost
	StateReady    State = "ready"
	StateWorking  State = "working" // a turn is running; a submit is queued
	StateAsking   State = "asking"  // a dialog or a menu is open: Enter would answer it, a paste is dropped
)

// What the screen is made of, and a program that reads it can rely on.
const (
	Title           = "small agent" // the status line is Title, the state and the conversation id
	Separator       = " · "         // between the three
	BoxPrefix       = "> "          // begins the first row of the box; the others are indented as far
	RuleChar        = "─"           // a line of these stands above and below the box
	SelectionPrefix = "❯ "          // before the selected answer of a dialog; the others are indented as far
)

// Screen is what a screen of the agent says.
type Screen struct {
	State  State
	ID     string   // of the conversation
	Box    string   // subject is visible in the box, a line feed between rows; empty while a dialog hides it
	Dialog []string // the lines of the dialog or menu that is open
}

// ParseScreen reads the text of a screen, as tmux capture-pane prints it. It is false when the text is not a whole
// screen of the agent: another program's, or one that is just being drawn. A screen that is half way to or from a
// dialog reads as asking.
func ParseScreen(text string) (Screen, bool) {
	lines := strings.Split(strings.TrimRight(text, " \r\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	last := len(lines) - 1
	s, ok := parseStatus(lines[last])
	if !ok || last < 3 || !isRule(lines[last-1]) {
		return Screen{}, false
	}
	top := last - 2
	for top >= 0 && !isRule(lines[top]) {
		top--
	}
	if top < 0 || top == last-2 {
		return Screen{}, false
	}
	return s.withRegion(lines[top+1 : last-1]), true
}

func (s Screen) withRegion(region []string) Screen {
	mark := strings.TrimSpace(BoxPrefix)
	if !strings.HasPrefix(region[0], mark) {
		s.State, s.Dialog = StateAsking, region
		return s
	}
	rows := make([]string, len(region))
	for i, r := range region {
		rows[i] = strings.TrimPrefix(r, "  ")
	}
	rows[0] = strings.TrimPrefix(strings.TrimPrefix(region[0], mark), " ")
	s.Box = joinRows(rows)
	return s
}

func parseStatus(line string) (Screen, bool) {
	parts := strings.Split(line, Separator)
	if len(parts) != 3 || parts[0] != Title || !idShape().MatchString(parts[2]) {
		return Screen{}, false
	}
	s := Screen{State: State(parts[1]), ID: parts[2]}
	return s, slices.Contains([]State{StateStarting, StateReady, StateWorking, StateAsking}, s.State)
}

func isRule(line string) bool {
	return line != "" && strings.Trim(line, RuleChar) == ""
}

// paragraph is a paragraph of the conversation view.
type paragraph struct{ speaker, text string }

// screenContent is all that a frame is made from.
type screenContent struct {
	columns, rows int
	paragraphs    []paragraph
	hint          string
	box           *box
	dialog        *dialog // hides the box
	state         State
	id            string
}

// frame is a drawn screen: one string a row, and where the cursor stands.
type frame struct {
	lines []string
	y, x  int
}

func boxWidth(columns int) int { return max(columns-len(BoxPrefix), 4) }

func (p screenContent) frame() frame {
	region, y, x := p.regionRows()
	rule := strings.Repeat(RuleChar, p.columns)
	bottom := append([]string{p.hint, rule}, region...)
	bottom = append(bottom, rule, strings.Join([]string{Title, string(p.state), p.id}, Separator))
	lines := []string{Title + " — type a message, Enter sends it; /help says more"}
	lines = append(lines, p.conversationRows(p.rows-1-len(bottom))...)
	f := frame{lines: append(lines, bottom...), y: len(lines) + 2 + y, x: x}
	if over := len(f.lines) - p.rows; over > 0 {
		f.lines, f.y = f.lines[over:], f.y-over
	}
	for i := range f.lines {
		f.lines[i] = truncateToWidth(f.lines[i], p.columns)
	}
	return f
}

func (p screenContent) regionRows() (rows []string, y, x int) {
	if p.dialog != nil {
		return p.dialog.lines(p.columns)
	}
	rows, y, x = p.box.render(boxWidth(p.columns))
	for i := range rows {
		rows[i] = "  " + rows[i]
	}
	rows[0] = BoxPrefix + rows[0][2:]
	return rows, y, min(x+len(BoxPrefix), p.columns-1)
}

// conversationRows is the last n rows of what was said, with empty ones below when there is less.
func (p screenContent) conversationRows(n int) []string {
	var rows []string
	for i := len(p.paragraphs) - 1; i >= 0 && len(rows) < n; i-- {
		rows = append(p.paragraphs[i].rows(p.columns), rows...)
	}
	for len(rows) < n {
		rows = append(rows, "")
	}
	return rows[len(rows)-max(n, 0):]
}

const (
	speakerWidth     = 7    // of the column with who said it, so that nothing said begins a line
	maxParagraphRows = 8    // of one paragraph
	maxLineChars     = 1000 // characters of a line
)

func (s paragraph) rows(columns int) []string {
	var rows []string
	lines := strings.SplitN(s.text, "\n", maxParagraphRows+1)
	for _, line := range lines {
		rows = append(rows, wrap(printable(shorten(line, maxLineChars)), max(columns-speakerWidth, 4))...)
	}
	if len(rows) > maxParagraphRows {
		rows = append(rows[:maxParagraphRows-1], "…")
	}
	for i := range rows {
		who := ""
		if i == 0 {
			who = s.speaker
		}
		rows[i] = fmt.Sprintf("%-*s%s", speakerWidth, who, rows[i])
	}
	return rows
}

// dialog is a question, or a menu, that hides the box until it is answered.
type dialog struct {
	title    string
	choices  []string
	selected int
	isMenu   bool
	isChoice bool   // neither yes nor no answers it
	subject  string // that is asked
	plan     string // what it asks to carry out

	hasOptions bool // the hook is told the choices, and may answer with one
}

func (d *dialog) lines(columns int) (rows []string, y, x int) {
	rows = wrap(printable(d.title), columns)
	if len(rows) > 3 {
		rows = append(rows[:2], "…")
	}
	y = len(rows) + d.selected
	for i, c := range d.choices {
		mark := "  "
		if i == d.selected {
			mark = SelectionPrefix
		}
		rows = append(rows, fmt.Sprintf("%s%d. %s", mark, i+1, c))
	}
	return append(rows, "Enter chooses, Escape cancels"), y, 0
}

// decision names the answer with choice; a negative one is Escape.
func (d *dialog) decision(choice int) string {
	switch {
	case d.isMenu && choice < 0:
		return DecisionClosed
	case d.isMenu, d.isChoice && choice >= 0:
		return DecisionChosen
	case choice == 0:
		return DecisionApproved
	}
	return DecisionDenied
}
