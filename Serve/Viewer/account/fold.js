// Text as it is compared: canonically composed and without case, so that people find what they
// mean.

/**
 * The folded form of a text: ß and SS, Σ and ς, é in one character or two are the same. Forms are
 * compared character by character, not by what looks like one: the beginning of a word in any
 * script, or a sign without its marks, is found.
 */
export const fold = (text) => text.normalize("NFC").toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFC");

/**
 * The ranges of a composed text (NFC) that fold to one of some folded words: [from, to], in order,
 * none within another.
 */
export function rangesOf(text, words) {
  let folded = "";
  const places = [];
  let at = 0;
  for (const char of text) {
    for (const unit of fold(char)) {
      folded += unit;
      for (let i = 0; i < unit.length; i++) places.push(at);
    }
    at += char.length;
  }
  places.push(at);
  const found = [];
  for (const word of words) {
    for (let i = word ? folded.indexOf(word) : -1; i >= 0; i = folded.indexOf(word, i + word.length)) {
      let to = i + word.length;
      // A character that folds to several belongs to the match as a whole.
      while (to < places.length - 1 && places[to] === places[to - 1]) to++;
      found.push([places[i], places[to]]);
    }
  }
  found.sort(([left], [right]) => left - right);
  return found.filter(([from], i) => i === 0 || from >= found.slice(0, i).reduce((end, one) => Math.max(end, one[1]), 0));
}

/**
 * The words of a query, folded, and its filters: name:value. A phrase in quotation marks is one
 * word.
 */
export function parseQuery(query) {
  const [words, filters] = [[], []];
  for (const word of query.match(/"[^"]*"?|\S+/g) ?? []) {
    const [, name, value] = /^(has|lang|since|until|in|from|to):(\S+)$/i.exec(word) ?? [];
    if (name) filters.push({ name: name.toLowerCase(), value });
    else if (word.replaceAll("\"", "")) words.push(fold(word.replaceAll("\"", "")));
  }
  return { words, filters };
}
