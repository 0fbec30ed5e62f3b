package tmux

// UsePS has t ask ps for processes, as it does where there is no /proc.
func (t *Tmux) UsePS() { t.table = psTable{} }
