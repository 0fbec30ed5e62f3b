#!/bin/sh
# The same talk and answer with each agent's own program: from the local workspace through the bot into its pane, and the answers
# back into the thread. All of it is on loopback, in a home of its own.
#
#     testdata/agents/talk.sh [claude|codex|gemini|opencode]...
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- claude codex gemini opencode
[ -d testdata/agents/node_modules ] || npm ci --prefix testdata/agents --no-audit --no-fund --ignore-scripts

talk() { "${GO:-go}" test -count=1 -timeout 10m -run "^TestRealTalkAndAnswer\$/^$1\$" ./bot; }

status=0
for agent in "$@"; do
	case $agent in
	claude | codex | gemini | opencode) ;;
	*) echo "there is no agent $agent" >&2; exit 2 ;;
	esac
	echo "$agent"
	talk "$agent" || status=1
done
exit "$status"
