// What collections are called.

const TITLES = {
  "app.bsky.actor.profile": "Profile", "app.bsky.feed.post": "Posts", "app.bsky.feed.like": "Likes", "app.bsky.feed.repost": "Reposts", "app.bsky.graph.follow": "Follows",
  "app.bsky.graph.block": "Blocks", "app.bsky.graph.list": "Lists", "app.bsky.graph.listitem": "List members", "app.bsky.graph.listblock": "Blocked lists",
  "app.bsky.feed.generator": "Feeds", "app.bsky.graph.starterpack": "Starter packs", "app.bsky.feed.threadgate": "Who can reply", "app.bsky.feed.postgate": "Who can quote",
  "app.bsky.graph.verification": "Verifications", "app.bsky.labeler.service": "Labeler", "app.bsky.actor.status": "Status", "chat.bsky.actor.declaration": "Chat settings",
  "com.whtwnd.blog.entry": "Blog entries (WhiteWind)", "pub.leaflet.document": "Documents (Leaflet)", "pub.leaflet.publication": "Publications (Leaflet)", "site.standard.document": "Documents", "site.standard.publication": "Publications",
};

/** The name of a collection that people know, or its NSID. */
export const titleOf = (collection) => TITLES[collection] ?? collection;
