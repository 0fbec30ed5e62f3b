// The emoji that have a name here. Any other name is shown as it is written.
const names = {
  eyes: "👀", keyboard: "⌨️", white_check_mark: "✅", heavy_check_mark: "✔️", hourglass_flowing_sand: "⏳", hourglass: "⌛", warning: "⚠️",
  grey_question: "❔", question: "❓", exclamation: "❗", large_green_circle: "🟢", red_circle: "🔴", white_circle: "⚪",
  large_yellow_circle: "🟡", large_blue_circle: "🔵", black_circle: "⚫", no_entry: "⛔", no_entry_sign: "🚫", x: "❌", "+1": "👍",
  thumbsup: "👍", "-1": "👎", thumbsdown: "👎", tada: "🎉", rocket: "🚀", fire: "🔥", pray: "🙏", grinning: "😀", smile: "😄", joy: "😂",
  heart: "❤️", wave: "👋", clap: "👏", raised_hands: "🙌", ok_hand: "👌", thinking_face: "🤔", bulb: "💡", memo: "📝", pencil: "📝",
  pencil2: "✏️", mag: "🔍", lock: "🔒", unlock: "🔓", key: "🔑", gear: "⚙️", wrench: "🔧", hammer: "🔨", package: "📦", robot_face: "🤖",
  speech_balloon: "💬", bell: "🔔", zap: "⚡", star: "⭐", sparkles: "✨", bug: "🐛", construction: "🚧", recycle: "♻️", repeat: "🔁",
  arrows_counterclockwise: "🔄", arrow_right: "➡️", arrow_left: "⬅️", arrow_up: "⬆️", arrow_down: "⬇️", link: "🔗", paperclip: "📎",
  page_facing_up: "📄", open_file_folder: "📂", file_folder: "📁", computer: "💻", desktop_computer: "🖥️", clock1: "🕐", stopwatch: "⏱️",
  calendar: "📅", chart_with_upwards_trend: "📈", books: "📚", octagonal_sign: "🛑", stop_sign: "🛑", information_source: "ℹ️",
  raising_hand: "🙋", bust_in_silhouette: "👤", busts_in_silhouette: "👥", ghost: "👻", skull: "💀", coffee: "☕", de: "🇩🇪",
  "man-woman-girl": "👨‍👩‍👧", zzz: "💤", hand: "✋", point_right: "👉", scissors: "✂️", broom: "🧹", closed_lock_with_key: "🔐",
};

export const picks = ["+1", "eyes", "white_check_mark", "tada", "heart", "rocket", "fire", "thinking_face", "pray", "clap", "wave", "bug"];

export function emoji(name) { return names[name] || ""; }

// glyph is the emoji of a rich_text element: its code points, or its name.
export function glyph(name, unicode) {
  if (unicode && /^[0-9a-f-]+$/i.test(unicode)) {
    try { return String.fromCodePoint(...unicode.split("-").map((c) => parseInt(c, 16))); } catch { /* no such code point */ }
  }
  return emoji(name) || ":" + name + ":";
}
