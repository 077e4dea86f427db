/// A language to write in: its common words, the commonest first, and the syllables that rarer ones
/// are made of.
struct Language {
  /// Its code, as in a post's `langs`.
  let code: String
  /// What stands between words.
  let space: String
  /// What sentences end with.
  let stops: [String]
  /// The common words.
  let words: [String]
  /// What names and rare words are made of.
  let syllables: [String]

  /// A language to write a post in, English in about half of the cases.
  static func any(_ random: inout SeededRandom) -> Language {
    random.chance(50) ? all[0] : all[random.ranked(below: all.count)]
  }

  /// A word: a common one, or now and then a rare one.
  func word(_ random: inout SeededRandom) -> String {
    guard random.chance(8) else { return random.pickRanked(words) }
    let count = space.isEmpty ? random.number(in: 1...2) : random.number(in: 2...4)
    return (0..<count).map { _ in random.pick(syllables) }.joined()
  }

  /// Sentences that come to about so many characters.
  func text(length: Int, _ random: inout SeededRandom) -> String {
    let length = space.isEmpty ? length / 2 : length
    var text = ""
    var size = 0
    var startsSentence = true
    while size < length {
      var word = word(&random)
      if startsSentence, random.chance(70) { word = word.prefix(1).uppercased() + word.dropFirst() }
      startsSentence = random.chance(10)
      if startsSentence {
        word += random.pickRanked(stops)
      } else if random.chance(6), !space.isEmpty {
        word += ","
      }
      if !text.isEmpty { text += space }
      text += word
      size += word.count + space.count
    }
    if random.chance(14) {
      text += space + random.pickRanked(["😂", "❤️", "🔥", "🥹", "✨", "😭", "👀", "🙏", "🎉", "💙"])
    }
    return text
  }
}

extension Language {
  private static func split(_ text: String) -> [String] {
    text.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// The languages, the commonest first.
  static let all = [english, japanese, portuguese, german, spanish, french]

  private static let english = Language(
    code: "en", space: " ", stops: [".", "!", "?", "...", " lol", ":"],
    words: split(
      """
      the to a and of I is it in that you for this my on be have was with are but not just so like
      all me they what if at as about we do he or can out when up one your get people will there from
      more how really think know time now who would no an some good been their new going see has want
      it's I'm don't can't that's even still day because love much only make them right than into got
      had here back her too by way also never day today being why his those other which over were go
      work thing first after very most something well should need could our us did last where any then
      always every off two look down feel made great man thought us said getting year life these world
      same may before little please sure yes better best things again nothing doing someone anyone
      everyone trying watch read play game book music art cat dog post posts sky blue thanks thank
      happy sad funny weird bad real big old long next night morning week weekend home house school
      city country news government election party policy climate science paper data research model
      code bug server network account feed follow share list story movie show episode season team win
      won lost goal season coffee food dinner lunch bread rain snow sun weather summer winter spring
      friend friends family kid kids mom dad child woman women men guy guys person human rights law
      court money pay price job company business market tax health care doctor hospital vaccine body
      mind heart eyes hand head face hair water fire earth tree garden bird birds fish flower train
      bike car road street bridge museum photo picture drawing color light dark white black red green
      hot cold hard easy early late free open close start stop keep let tell ask call try help hope
      wish wait leave come came went took take give gave put set run ran walk talk sleep wake eat
      drink buy sell find found lose build fix break write wrote learn teach listen hear heard remember
      forget believe understand agree mean matter change move turn stay live die kill save miss
      actually literally honestly probably maybe definitely absolutely basically exactly especially
      apparently finally recently already almost enough quite pretty super kinda gonna wanna
      thread link question answer reason point problem idea example case fact number part place end
      side kind way lot bit half whole once twice minute hour month years ago soon later tomorrow
      yesterday tonight anyway though although since until while during between against without
      through around under above behind beyond across
      """),
    syllables: split(
      """
      ra mo ten ver lin sta con per dri fel nor ka shi bur ton wick ham ley ford ster man dan rick
      son el la mi ro ca ber gin tor que zan phi lo mer dith ever green stone brook field hol low
      cre tive ness tion ment able ing er ly un re pre dis inter over under mar pol tech bio geo
      """))

  private static let japanese = Language(
    code: "ja", space: "", stops: ["。", "！", "…", "？", "w", "〜"],
    words: split(
      """
      の は に を が と も で た です ます から まで ない ある いる する した して なる なった けど ので この その あの
      今日 明日 昨日 今 私 僕 自分 人 時間 仕事 会社 学校 家 部屋 電車 駅 天気 雨 雪 晴れ 暑い 寒い 朝 昼 夜
      おはよう こんにちは こんばんは おやすみ ありがとう お疲れ様 よろしく すごい 楽しい 嬉しい 悲しい 美味しい 可愛い
      好き 嫌い 大丈夫 本当 多分 絶対 やっぱり なんか ちょっと とても めっちゃ もう まだ また もっと 最近 久しぶり
      ゲーム アニメ 漫画 映画 音楽 写真 絵 描いた 本 読んだ 見た 聞いた 食べた 飲んだ 買った 行った 来た 帰った 寝る
      起きた 思う 思った 言う 言った 知って 分かる できる できた ください みたい かも だけ くらい ところ こと もの
      青空 投稿 フォロー タイムライン 猫 犬 鳥 花 桜 海 山 川 空 月 星 ご飯 ラーメン カレー コーヒー お茶 お酒 ビール
      東京 大阪 京都 日本 世界 友達 家族 子供 先生 学生 問題 話 気持ち 感じ 意味 理由 方法 必要 情報 新しい 古い
      """),
    syllables: split(
      """
      アリ カナ サト タケ ナオ ハル マリ ヤマ ラン ワタ ユキ ミズ トモ シン ケン ソラ 田中 鈴木 高橋 渡辺 藤 村 森 石
      原 松 井 小 大 中 上 下 新 東 西 南 北 光 風 火 水 木 金 土 心 愛 夢 力 道 神 学 文 語 数 線 点 形 色 音 声
      """))

  private static let portuguese = Language(
    code: "pt", space: " ", stops: [".", "!", "?", "...", " kkkk", "!!"],
    words: split(
      """
      que de não a o e eu é um do da em uma pra com se me mas tá no na por mais os como isso muito bem
      só tem vai já ele ela você meu minha gente quando hoje agora aqui foi ser ter fazer esse essa tudo
      nada até depois antes sempre nunca também porque então assim mesmo ainda cara coisa dia vida tempo
      mundo pessoa pessoas amigo amor casa trabalho escola cidade país governo notícia jogo time gol
      música filme série livro foto gato cachorro comida café almoço jantar chuva sol calor frio noite
      manhã semana mês ano bom boa melhor pior grande pequeno novo velho lindo feliz triste cansado acho
      quero posso preciso gosto adoro odeio sei vou estou tô estava era fui deu disse falar ver ouvir ler
      comer dormir acordar sair voltar chegar saudade obrigado obrigada bom dia boa tarde beleza valeu
      demais pouco menos qualquer outro outra primeiro última sobre entre sem contra durante
      """),
    syllables: split(
      """
      ri ca ma lo sa pe bra gu ne ti ção mente lu fer nan do ra bel zi nho ta vi gos mo re al ven to pi
      co sil car jo ão ve ir da des per tran for ma dor
      """))

  private static let german = Language(
    code: "de", space: " ", stops: [".", "!", "?", "...", ":", " 😅"],
    words: split(
      """
      die der und ich ist nicht das in es ein zu sie mit auf für so den auch was wie von eine wir aber
      man dem im wenn noch nur habe hat sind dass mal ja mir schon hier oder an als wird jetzt werden
      kann mehr da doch immer heute gut ganz einfach alle kein keine sein haben mein meine wieder nach
      bei aus um vom zum zur bis über unter gegen ohne durch weil warum wer wo wann leider vielleicht
      eigentlich natürlich genau wirklich sehr viel viele wenig Leute Mensch Menschen Zeit Tag Jahr
      Woche Morgen Abend Nacht Arbeit Schule Stadt Land Welt Leben Frage Antwort Problem Beispiel Grund
      Regierung Wahl Partei Politik Klima Bahn Zug Fahrrad Auto Straße Haus Wohnung Garten Katze Hund
      Vogel Buch Film Serie Musik Spiel Bild Foto Kaffee Brot Kuchen Essen Wetter Regen Schnee Sonne
      Kinder Familie Freunde machen gehen kommen sehen sagen denken glauben finden lesen schreiben
      spielen hören essen trinken schlafen arbeiten danke bitte gerne schön toll müde froh traurig neu
      alt groß klein lang kurz früh spät erste letzte nächste andere
      """),
    syllables: split(
      """
      Be Ge Ver Ent Er Zu Vor An Ab Auf Aus Ein kunft haltung stellung schaft heit keit ung lich isch
      wagen haus berg dorf stein bach feld mann hof markt platz werk zeug stand fall gang lauf satz
      """))

  private static let spanish = Language(
    code: "es", space: " ", stops: [".", "!", "?", "...", " jaja", ":"],
    words: split(
      """
      de que la no el en y a los se es un por las me con lo una si para del mi al como pero más te yo ya
      su le todo muy bien está esto eso hay ser hoy qué cuando porque así nada solo también sin sobre
      vida día tiempo mundo gente persona amigo amor casa trabajo escuela ciudad país gobierno noticia
      juego partido equipo gol música película serie libro foto gato perro comida café lluvia sol calor
      frío noche mañana semana mes año bueno buena mejor peor grande pequeño nuevo viejo lindo feliz
      triste cansado creo quiero puedo necesito gusta encanta odio sé voy estoy estaba era fui dijo
      hablar ver oír leer comer dormir salir volver llegar gracias buenos días saludos siempre nunca
      ahora aquí allí después antes entonces mismo todavía cosa cosas otra otro primera último entre
      contra durante desde hasta
      """),
    syllables: split(
      """
      ra mi lo ca re sa ti pe ma cion mente gue ro ber to al fon so ve la na do que ri da tor me sin
      es par gon zá lez mar tí nez fer nán
      """))

  private static let french = Language(
    code: "fr", space: " ", stops: [".", " !", " ?", "...", " :", " 😂"],
    words: split(
      """
      de la le et les des à en un une est que pas je il du pour dans qui ce on ne sur se au plus c'est
      avec j'ai par mais tout vous nous ça même bien fait si ils elle être son sa ses mon ma mes cette
      comme aussi très encore toujours jamais rien quand parce donc alors ici là hier aujourd'hui demain
      jour temps vie monde gens personne ami amour maison travail école ville pays gouvernement vote
      jeu match équipe musique film série livre photo chat chien repas café pluie soleil chaud froid
      nuit matin semaine mois année bon bonne meilleur pire grand petit nouveau vieux beau heureux
      triste fatigué crois veux peux dois aime adore déteste sais vais suis était dit parler voir
      entendre lire manger dormir sortir revenir arriver merci bonjour bonsoir salut trop peu moins
      autre premier dernier entre contre pendant depuis
      """),
    syllables: split(
      """
      ra mon tier lle eau eux gne tion ment ance ette oir bel fort ville mar tin du pont ber nard ro
      che be lan ger per re con dé pré sur
      """))
}
