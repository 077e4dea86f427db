// Private data: what the server gave to the account's owner alone, and the archive has with `backup
// --private`.

import { counted, h, moment, number, outside } from "./dom.js";
import { person, place } from "./people.js";
import { tree } from "./tree.js";

const TITLES = {
  "app.bsky.actor.getPreferences": "Preferences", "app.bsky.bookmark.getBookmarks": "Bookmarks", "app.bsky.draft.getDrafts": "Drafts", "app.bsky.graph.getMutes": "Muted accounts",
  "app.bsky.graph.getListMutes": "Muted lists", "chat.bsky.convo.listConvos": "Conversations", "chat.bsky.convo.getMessages": "Messages", "app.bsky.notification.getPreferences": "Notification preferences",
};

/** All of it, by the methods that it came from. */
export async function privateData(view) {
  const found = await view.ask("privateData");
  return [h("h1", null, "Private"), h("p", { class: "soft" }, "The server gave this to the account's owner alone."),
    found.length === 0 && h("p", { class: "soft" }, "There is nothing here."),
    found.map(({ endpoint, fetchedAt, answers, fault }) => h("section", null,
      h("h2", null, TITLES[endpoint] ?? endpoint), h("p", { class: "soft small" }, `${endpoint}, ${moment(Date.parse(fetchedAt))}`),
      fault && h("p", { class: "warning" }, fault), shown(view, endpoint, answers)))];
}

function shown(view, endpoint, answers) {
  const items = (name) => answers.flatMap((answer) => Array.isArray(answer?.[name]) ? answer[name] : []);
  const list = (all, draw) => all.length ? [h("p", { class: "soft small" }, number(all.length)), h("ul", { class: "plain" }, all.map((one) => h("li", { class: "post" }, draw(one))))] : h("p", { class: "soft" }, "None.");
  const who = (author) => author?.handle ? outside(`https://bsky.app/profile/${encodeURIComponent(author.did)}`, `${author.displayName || ""} @${author.handle}`.trim()) : person(view, String(author?.did ?? ""));
  const when = (text) => h("span", { class: "soft small" }, ` ${moment(Date.parse(text))}`);
  const words = (text) => typeof text === "string" && h("p", { class: "text", dir: "auto" }, text);
  switch (endpoint) {
    case "app.bsky.bookmark.getBookmarks": return list(items("bookmarks"), (one) => [one?.item?.author ? who(one.item.author) : place(view, one?.subject?.uri), when(one?.createdAt), words(one?.item?.record?.text), h("p", { class: "small" }, place(view, one?.subject?.uri))]);
    case "app.bsky.draft.getDrafts": return list(items("drafts"), (one) => [when(one?.updatedAt ?? one?.createdAt), (Array.isArray(one?.draft?.posts) ? one.draft.posts : []).map((post) => words(post?.text))]);
    case "app.bsky.graph.getMutes": return list(items("mutes"), who);
    case "chat.bsky.convo.listConvos": return list(items("convos"), (one) => [(Array.isArray(one?.members) ? one.members : []).map((member) => [who(member), " "]), one?.lastMessage && [words(one.lastMessage.text), when(one.lastMessage.sentAt)]]);
    case "chat.bsky.convo.getMessages": return list(items("messages"), (one) => [person(view, String(one?.sender?.did ?? "")), when(one?.sentAt), words(one?.text)]);
    default: return [h("p", { class: "soft small" }, counted(answers.length, "answer")), answers.map((answer) => tree(view, answer))];
  }
}
