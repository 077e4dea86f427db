extension PageLayout {
  /// The file of the style sheet.
  static let styleName = "style.css"
  /// The one style sheet of the pages.
  static let style = """
    :root { color-scheme: light dark; --line: #8884; --soft: #8888; --accent: light-dark(#1a5fb4, #8ab8f0); }
    body { max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; font: 1rem/1.55 system-ui, sans-serif;
      background: light-dark(#fff, #15171a); color: light-dark(#1a1c1e, #e4e6e8); overflow-wrap: break-word; }
    a { color: var(--accent); }
    header { margin-bottom: 2rem; }
    nav { margin: 1rem 0; }
    nav a + a { margin-left: 1rem; }
    h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
    h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
    .banner { width: 100%; height: auto; max-height: 14rem; object-fit: cover; border-radius: .75rem; }
    .avatar { width: 5rem; height: 5rem; object-fit: cover; border-radius: 50%; }
    .soft, time, figcaption { color: light-dark(#5c6368, #9aa2a9); font-size: .875rem; }
    .text { white-space: pre-wrap; margin: .4rem 0; }
    article { padding: 1rem 0; border-top: 1px solid var(--line); }
    article:target { background: light-dark(#fff7df, #2a2617); outline: .5rem solid light-dark(#fff7df, #2a2617); }
    figure { margin: .75rem 0; }
    figure img, figure video { max-width: 100%; height: auto; border-radius: .5rem; background: var(--line); }
    .lost, .card, blockquote { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; margin: .75rem 0; }
    .lost { border-style: dashed; }
    .card img { max-width: 100%; height: auto; }
    details > summary { cursor: pointer; }
    pre { overflow-x: auto; font-size: .8125rem; white-space: pre-wrap; }
    ul.months { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .25rem 1rem; }
    """
}
