//! The language of a text, told by its script and stop words, and the stop words of each language.
//!
//! Stop words are compared by spelling, not by stem: `being` and `be` are stop words of English, `beings` is not. Each
//! list is that of one language, because one language's stop word is another one's noun: German `die`, Dutch `hoe`,
//! English `die` and `hoe`.
//!
//! A script that only one of these languages uses tells it at once: Greek, Hebrew, Hangul. Others share Latin,
//! Cyrillic or Arabic letters. There each stop word counts for the languages that have it, and so does a letter that
//! few of them have. No evidence, or the same for two languages, gives none.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use crate::search::tokenizer::{normalize, tokens};
use crate::search::word::{ShortHasher, Word};

/// How much of a text is read: the language of a longer one is told by its start. So the cost has a limit.
const MAX_BYTES: usize = 4096;

/// If a language has so many votes more than any other after a run of words, the rest is not read.
const CLEAR_LEAD: u32 = 6;
const WORDS_PER_LOOK: usize = 16;

/// A language needs a vote from one of so many words: in prose every third word is a stop word, in code and in lists of
/// names few are.
const WORDS_PER_VOTE: usize = 10;

/// The longest stop word, in bytes.
const MAX_WORD_BYTES: usize = 24;

/// Japanese has kana for at least one of so many Han characters; a Chinese text may quote a few.
const HAN_PER_KANA: u32 = 10;

/// A language whose texts can be told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Swedish,
    Danish,
    Norwegian,
    Finnish,
    Polish,
    Czech,
    Hungarian,
    Romanian,
    Turkish,
    Indonesian,
    Vietnamese,
    Russian,
    Ukrainian,
    Arabic,
    Persian,
    Greek,
    Hebrew,
    Hindi,
    Tamil,
    Thai,
    Korean,
    Japanese,
    Chinese,
}

use Language::*;

/// The languages that are told by stop words, with these words.
///
/// English was tuned on real questions, and has the parts of `don't` and `we'll` after the apostrophe.
const STOP_WORDS: [(Language, &str); 25] = [
    (
        English,
        "a about after again against all am an and any are as at be because been before being below between both but by can \
could did do does doing don down during each few for from further had has have having he her here hers herself him \
himself his how i if in into is it its itself just let me more most my myself no nor not now of off on once only or \
other our ours ourselves out over own please same shall she should so some such than that the their theirs them \
themselves then there these they this those through to too under until up us very was we were what when where which \
while who whom whose why will with would you your yours yourself yourselves s t d ll m re ve ago last past many much \
long often",
    ),
    (
        German,
        "aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem den denn der des dich die \
dir doch dort du durch ein eine einem einen einer eines er es euch euer für habe haben hast hat hatte hatten hier ich ihm \
ihn ihr ihre im in ist ja jede jeder kann kein keine können man mein meine meinem meinen meiner mich mir mit muss nach nicht \
noch nun nur ob oder ohne schon sehr sein seine seit sich sie sind so soll über um und uns unser unter vom von vor wann war \
waren warum was weil welche wenn wer werden wie wieder will wir wird wo wurde wurden zu zum zur zwischen",
    ),
    (
        French,
        "au aux avec avais avait ai as a ce ces cet cette ceux chez comme comment d dans de depuis des dont du elle elles en \
es est et était été être eu fait il ils j je l la le les leur leurs lui m ma mais me même mes mon n ne nos notre nous on ont \
ou où par pas peut plus pour pourquoi qu quand que quel quelle quels quelles qui quoi s sa sans se ses si son sont sur t ta \
te tes toi ton très tu un une va vers vos votre vous y",
    ),
    (
        Spanish,
        "a al algo ante antes aquí como cómo con contra cual cuál cuando cuándo cuánto de del desde donde dónde durante e el \
él ella ellas ellos en entre era es esa ese eso esta está están este esto estos fue fueron ha hace han has hasta hay he la \
las le les lo los más me mi mis muy nada ni no nos nosotros o os otra otro para pero por porque puede qué que quien quién se \
ser si sí sin sobre son soy su sus también te tengo tiene todo tu tus un una unas uno unos y ya yo",
    ),
    (
        Italian,
        "a abbiamo ad agli ai al alla alle allo anche avere c che chi ci come con cosa cui da dagli dai dal dalla degli dei \
del della delle dello di dopo dove e è ed era essere fa fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me \
mi mia mio molto ne nei nel nella nelle noi non nostro o ogni ora perché per più può qual quale quali quando quanto quella \
quello questa queste questi questo sei senza si sia siamo sono sta stato su sua sugli sul sulla suo ti tra tu tua tuo tutto \
un una uno vi voi",
    ),
    (
        Portuguese,
        "a ao aos as às até cada com como da das de dela dele deles depois do dos e é ela elas ele eles em entre era essa esse \
está estão estava este eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha muito na não nas nem no nos \
nós nossa nosso num numa o onde os ou para pela pelo pelos por porque qual quando que quem são se sem ser seu seus só sua \
suas também te tem tenho ter teu tinha tu um uma umas uns você vocês",
    ),
    (
        Dutch,
        "aan als altijd ben bij daar dan dat de deze die dit doen door dus een eens en er geen haar had hadden heb hebben heeft \
hem het hier hij hoe hun ik in is ja je jij jouw jullie kan kon kunnen maar me meer met mij mijn moet na naar niet niets nog \
nu of om omdat onder ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was \
wat we wel welke werd wie wij wil worden wordt zal ze zich zij zijn zo zonder zou",
    ),
    (
        Swedish,
        "alla allt att av bara blev bli blir de dem den denna deras dess det detta dig din ditt du där efter ej eller en er ert \
ett från för ha hade han hans har henne hennes hon honom hur här i icke inte jag kan kunde man med mellan men mig min mina \
mitt mycket måste ni nu när någon något några och om oss på samma sedan ska skulle som så till under upp ut utan vad var \
varför vara varit vem vi vid vilken vill är än",
    ),
    (
        Danish,
        "af alle alt at blev blive bliver da de dem den denne der deres det dette dig din du efter eller en end er et for fra få \
ham han hans har havde hende her hos hun hvad hvem hver hvilken hvis hvor hvordan hvorfor hvornår i ikke ind jeg kan kunne \
man mange med meget men mig min mine mit mod må ned noget nogle nogen nu når og også om op os over på selv sig sin sit skal \
skulle som store så til ud under var vi vil ville vor være været",
    ),
    (
        Norwegian,
        "alle at av bare ble blir da de deg dem den denne der dere deres det dette din du eg ei eller en enn er et etter for fra \
før ha hadde han hans har henne her hun hva hvem hver hvilken hvis hvor hvordan hvorfor i ikke inn jeg kan kunne man mange \
med meg meget men mer mi min mine mitt mot må ned noe noen nå når og også om opp oss over på seg selv sin sitt skal skulle \
som så til ut uten var ved vi vil ville vår være vært",
    ),
    (
        Finnish,
        "ei eikä ja jo joka jos jossa kaikki kanssa keskellä koska kuin kuinka kuka kun me mutta myös miksi mikä milloin minä \
minun minut missä mitä mihin millainen mistä mukaan ne nyt näin olen oli olin olla ole oleva olet olisi olivat ollut on ovat \
pitää se sekä sen siellä siinä sitä sinä sinun tai tai te tämä tässä tuo tätä vaan vain vai vielä voi voin voiko he hän hänen \
että ettei niin nämä",
    ),
    (
        Polish,
        "a aby ale bardzo bez bo był była było były być ci co czy dla do gdy gdzie go i ich ile im jak jaka jaki jakie jako jest \
jestem jego jej jeszcze już kiedy kto która które który którzy lub ma mam mi mnie moje mój moja może na nad nam nas nie \
niego nim o od on ona one oni oraz po pod ponieważ przed przez przy są się sobie ta tak także tam te tego tej ten to tu tylko \
w we wszystko z za ze że żeby",
    ),
    (
        Czech,
        "a aby ale ani asi bez být byl byla bylo byly co další do ho i já jak jaké jaký jako je jeho jej její jejich jen ještě \
ji jsem jsi jsme jsou kde kdo kdy když která které který ma máme mám mě mezi mi může na nad nám nás ne nebo není než nic o \
od on ona po pod podle pokud pro proč protože před při s se si tak také ten tento to tu už v více vše však z za že",
    ),
    (
        Hungarian,
        "a az abban ahogy ahol aki akkor ami amely amit azt azért csak de egy ekkor el ennek én erre és ez ezek ezt fel ha hogy \
hogyan hol honnan igen így is itt jó ki kell le lehet lesz lett ma már még meg mert mi miért mikor milyen mint minden mit \
nagyon nekem nem nincs ő olyan ott össze sem ti te több után úgy új vagy vagyok van vannak volt volna voltak",
    ),
    (
        Romanian,
        "a acea acest acesta această aceste ai al ale am ar are aș așa asta atunci au avea că când care ce cel cea cele cine cu \
cum da dar de deci din după e ea ei el ele era este eu eram fi fost i îl îmi în între îți la le lor lui mai mă mea mei meu \
mi mult ne nici noi noastră nostru nu o ori pe pentru poate prin sau să se și sunt te ți toate tot tu un una unde unei unui \
unul va vă vor vreau",
    ),
    (
        Turkish,
        "acaba ama aslında az bana bazı belki ben benim beni bile bir biri biz bize bizim böyle bu buna bunda bundan bunlar bunu \
bunun burada çok çünkü da daha de değil diye eğer en gibi göre hangi hem hep hepsi her hiç için ile ise kadar ki kim mı mi \
mu mü nasıl ne neden nerede nereye niçin niye o olan olarak oldu olduğu olur ona onlar onu onun sana sen senin siz sonra şey \
şu tüm var ve veya ya yani yok",
    ),
    (
        Indonesian,
        "ada adalah agar akan aku anda apa apakah atau bagaimana bagi bahwa belum berapa bisa boleh bukan dalam dan dapat dari \
dengan di dia hanya harus hari ia ini itu jadi jangan jika juga kalau kami kamu kan kapan karena kata ke kepada kita lagi \
lalu lebih maka mana masih mengapa mereka namun nya oleh pada para pernah saat saja sampai sangat saya sebagai sedang \
seperti siapa sudah tapi telah tentang terhadap tidak untuk yang",
    ),
    (
        Vietnamese,
        "ai anh bạn bị bởi các cái cho chưa chúng có của cũng cùng đã đang đây để đến đều đi đó được em gì hay hơn hoặc khi \
không làm là lại lên mà mình một này nào nên nếu ngày người như những ở qua ra rất rồi sao sau sẽ tại tất tháng theo thì \
thế tôi trên trong từ và vào vẫn vì về việc với",
    ),
    (
        Russian,
        "а без бы был была были было быть в вам вас ваш весь во вот все всего всех вы где да для до его ее если есть еще же за \
зачем здесь и из или им их к как какая какие какой когда кто куда ли меня мне мой моя мы на над нам нас не него нее нет ни \
них но ну о об он она они оно от очень по под почему при про с сколько со так такой там тебе тебя то тогда того тоже только \
том тот ты у уже чего чем что чтобы чье эта эти это этого этот я",
    ),
    (
        Ukrainian,
        "а або але б без би був була були було бути в вам вас ваш вже ви від він вона вони все всі де для до дуже же за з зі і \
із їй їм їх її його й як яка яке який які якщо коли кого лише мене мені ми мій мої моя на над нам нас не нього ні ніж о об \
от по під при про та так також там те тебе ти тільки то тобі той тому треба ту тут у хто це цей ці чи чого чому ще що щоб я є",
    ),
    (
        Arabic,
        "في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف لماذا هل كم أي أن إن أنا أنت نحن هو هي هم كان \
كانت يكون قد لقد لا لم لن ليس و أو ثم بل لكن كل بعض عند بعد قبل بين حتى إذا كما غير منذ به بها له لها فيه فيها منه منها عليه \
عليها حول خلال",
    ),
    (
        Persian,
        "از به با در را که این آن است بود شد شده می ها های برای تا بر یا هم چه چی چرا چگونه چطور کجا کی کدام چند من تو او ما \
شما آنها یک هر همه اگر اما ولی پس نیست هست هستم هستند باید دارد دارم کرد کرده کن شود بودم مرا خود نه و دیگر فقط",
    ),
    (
        Greek,
        "ο η το οι τα του της των τον την τους τις ένας μια μία ένα και ή αλλά να θα δεν μη μην με σε στο στη στην στον στα \
στους στις από για ως κατά προς χωρίς που πού πότε πώς πως τι ποιος ποια ποιο ποιοι γιατί αν όταν ότι είναι ήταν είμαι έχω \
έχει έχουμε εγώ εσύ εμείς μου σου μας σας αυτό αυτός αυτή αυτά όπως πολύ πιο μόνο ήδη",
    ),
    (
        Hebrew,
        "של את על עם אל לא כן גם או אבל כי אם זה זאת זו אני אתה היא הוא אנחנו הם הן מה מי מתי איפה למה איך כמה איזה האם יש אין \
היה הייתה היו להיות כל רק עוד כבר כמו אחרי לפני בין עד לי לך לו לה לנו שלי שלך שלו אשר אז כאן שם מאוד ה ו ב ל",
    ),
    (
        Hindi,
        "का के की को में से पर है हैं था थी थे हो और या कि यह ये वह वे मैं हम तुम आप मेरा मेरी मेरे हमारा अपने अपनी अपना जो तो ही भी नहीं \
ने एक इस उस इन उन क्या कब कहाँ क्यों कैसे कौन कितना किस लिए साथ तक बाद अगर लेकिन कर करना किया रहा रहे रही गया गई होता",
    ),
];

/// The stop words of all languages by their normalized spelling, with the languages that have each.
static STOPS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut stops = HashMap::new();
    for (language, words) in STOP_WORDS {
        for token in tokens(words) {
            *stops.entry(token.normalized().into_owned()).or_default() |= language.bit();
        }
    }
    stops
});

/// The stop words of ASCII letters, which most words are compared with.
struct ShortStops {
    votes: HashMap<u128, u32, BuildHasherDefault<ShortHasher>>,
    /// A bit for each hash that one of them has: most words have none.
    seen: Box<[u64; 512]>,
}

static SHORT_STOPS: LazyLock<ShortStops> = LazyLock::new(|| {
    let short = |(word, votes): (&String, &u32)| Some((Word::new(word).short?, *votes));
    let votes: HashMap<_, _, _> = STOPS.iter().filter_map(short).collect();
    let mut seen = Box::new([0; 512]);
    for word in votes.keys() {
        let (at, bit) = ShortStops::place_of(*word);
        seen[at] |= bit;
    }
    ShortStops { votes, seen }
});

impl ShortStops {
    /// Returns the place of the bit of a word.
    fn place_of(word: u128) -> (usize, u64) {
        let folded = word as u64 ^ (word >> 64) as u64;
        let hash = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 49;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    /// Returns the languages that have the word as a stop word.
    fn votes(&self, word: u128) -> u32 {
        let (at, bit) = Self::place_of(word);
        match self.seen[at] & bit {
            0 => 0,
            _ => self.votes.get(&word).copied().unwrap_or_default(),
        }
    }
}

/// Letters that only some of the languages have. Each vowel with two marks is Vietnamese.
const LETTERS: [(&[Language], &str); 27] = [
    (&[German], "ß"),
    (&[German, Swedish, Finnish], "ä"),
    (&[German, Swedish, Finnish, Hungarian, Turkish], "ö"),
    (&[German, Hungarian, Turkish], "ü"),
    (&[Swedish, Danish, Norwegian], "å"),
    (&[Danish, Norwegian], "øæ"),
    (&[Spanish], "ñ"),
    (&[Portuguese, Vietnamese], "ãõ"),
    (&[French, Portuguese, Turkish], "ç"),
    (&[French, Italian, Vietnamese], "èìù"),
    (&[French, Romanian], "îœ"),
    (&[Polish], "łżśźćńąę"),
    (&[Czech], "řěůšžďť"),
    (&[Hungarian], "őű"),
    (&[Romanian], "șțţ"),
    (&[Romanian, Vietnamese], "ă"),
    (&[Turkish], "ğşı"),
    (&[Vietnamese], "đơư"),
    (&[Spanish, Portuguese, Czech, Hungarian], "áíú"),
    (&[French, Spanish, Portuguese, Italian, Czech, Hungarian], "é"),
    (&[Spanish, Portuguese, Polish, Czech, Hungarian], "ó"),
    (&[French, Italian, Portuguese], "à"),
    (&[French, Portuguese, Vietnamese], "êâô"),
    (&[Czech], "ý"),
    (&[Russian], "ыэъё"),
    (&[Ukrainian], "іїєґ"),
    (&[Persian], "پچژگکی"),
];

static LETTER_VOTES: LazyLock<HashMap<char, u32>> = LazyLock::new(|| {
    let votes = |(languages, letters): (&[Language], &'static str)| {
        let bits = languages.iter().fold(0, |bits, language| bits | language.bit());
        letters.chars().map(move |letter| (letter, bits))
    };
    LETTERS.into_iter().flat_map(votes).collect()
});

impl Language {
    /// The languages of [`STOP_WORDS`] that are written in Latin letters.
    const LATIN: u32 = (1 << (Vietnamese as u32 + 1)) - 1;

    const ALL: [Language; 30] = [
        English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Norwegian,
        Finnish, Polish, Czech, Hungarian, Romanian, Turkish, Indonesian, Vietnamese, Russian,
        Ukrainian, Arabic, Persian, Greek, Hebrew, Hindi, Tamil, Thai, Korean, Japanese, Chinese,
    ];

    /// Returns the bit of the language in a set.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Returns the languages of a set.
    #[cfg(feature = "stemmers")]
    pub(crate) fn of_set(set: u32) -> impl Iterator<Item = Language> {
        Self::ALL.into_iter().filter(move |language| set & language.bit() != 0)
    }
}

/// Returns the language of a text, if its script or its stop words tell it.
pub(crate) fn language(text: &str) -> Option<Language> {
    votes(tokens(text).map(|token| Word::new(token.text()))).winner()
}

/// Returns the language of a text with these words, unigrams among them.
///
/// Costs about a microsecond for a kilobyte, and reads the first four at most.
pub(crate) fn language_of(words: &[Word<'_>]) -> Option<Language> {
    votes(words.iter().copied()).winner()
}

fn votes<'a>(words: impl Iterator<Item = Word<'a>>) -> Votes {
    let (mut votes, stops) = (Votes::default(), &*SHORT_STOPS);
    let mut bytes = 0;
    for (number, word) in words.enumerate() {
        bytes += word.text.len() + 1;
        if bytes > MAX_BYTES {
            break;
        }
        votes.count(stops, word);
        if number % WORDS_PER_LOOK == WORDS_PER_LOOK - 1 && votes.lead() >= CLEAR_LEAD {
            break;
        }
    }
    votes
}

/// What the words of a text say about its language.
#[derive(Default)]
struct Votes {
    words: usize,
    of: [u32; Language::ALL.len()],
    han: u32,
    kana: u32,
}

impl Votes {
    fn count(&mut self, stops: &ShortStops, word: Word<'_>) {
        self.words += 1;
        let Word { text: word, short } = word;
        if let Some(short) = short {
            // A single letter is more often a name or a part of code than a word.
            // Vietnamese is always written with its marks, without which its words look like those of others.
            if word.len() > 1 {
                self.add(stops.votes(short) & !Vietnamese.bit());
            }
            return;
        }
        if word.is_ascii() {
            return;
        }
        let Some(first) = word.chars().find(|c| c.is_alphabetic()) else { return };
        match first {
            '\u{3040}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}' => self.kana += 1,
            '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}' => {
                self.han += 1
            }
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7FF}' => {
                self.add(Korean.bit())
            }
            '\u{0E00}'..='\u{0E7F}' => self.add(Thai.bit()),
            '\u{0B80}'..='\u{0BFF}' => self.add(Tamil.bit()),
            '\u{0900}'..='\u{097F}' => self.add(Hindi.bit()),
            '\u{0590}'..='\u{05FF}' => self.add(Hebrew.bit()),
            '\u{0370}'..='\u{03FF}' | '\u{1F00}'..='\u{1FFF}' => self.add(Greek.bit()),
            // Most texts in these scripts are in the first of the two; the stop words and letters of the other decide.
            '\u{0400}'..='\u{052F}' => self.add_either(word, Russian, Ukrainian),
            '\u{0600}'..='\u{06FF}' => self.add_either(word, Arabic, Persian),
            _ => {
                self.add(letter_votes(word));
                self.add(stop_votes(word));
            }
        }
    }

    /// Counts a word of a script that two of the languages share.
    fn add_either(&mut self, word: &str, usual: Language, other: Language) {
        self.add(usual.bit() | other.bit());
        self.add(letter_votes(word));
        self.add(stop_votes(word));
    }

    fn add(&mut self, languages: u32) {
        let mut left = languages;
        while left != 0 {
            self.of[left.trailing_zeros() as usize] += 1;
            left &= left - 1;
        }
    }

    /// Returns how many votes the first has before the second.
    fn lead(&self) -> u32 {
        let mut best = [0; 2];
        for &votes in &self.of {
            if votes > best[0] {
                best = [votes, best[0]];
            } else if votes > best[1] {
                best[1] = votes;
            }
        }
        best[0] - best[1]
    }

    fn winner(mut self) -> Option<Language> {
        let cjk = if self.kana * HAN_PER_KANA >= self.han.max(1) { Japanese } else { Chinese };
        self.of[cjk as usize] = self.han + self.kana;
        let most = self.of.into_iter().max().filter(|most| *most > 0)?;
        let mut first = Language::ALL.into_iter().filter(|it| self.of[*it as usize] == most);
        let winner = match (first.next(), first.next()) {
            (Some(only), None) => only,
            // Of languages that share most words, the first stands for both.
            (Some(usual @ (Russian | Arabic | Danish)), Some(Ukrainian | Persian | Norwegian))
                if first.next().is_none() =>
            {
                usual
            }
            _ => return None,
        };
        (most as usize * WORDS_PER_VOTE >= self.words).then_some(winner)
    }
}

/// Returns the languages that have the word as a stop word.
fn stop_votes(word: &str) -> u32 {
    if word.len() > MAX_WORD_BYTES {
        return 0;
    }
    STOPS.get(normalize(word).as_ref()).copied().unwrap_or_default()
}

/// Returns the languages that have the most telling letter of the word.
fn letter_votes(word: &str) -> u32 {
    let telling =
        word.chars().filter(|c| !c.is_ascii()).flat_map(char::to_lowercase).map(|letter| {
            match letter {
                '\u{1EA0}'..='\u{1EF9}' => Vietnamese.bit(),
                letter => LETTER_VOTES.get(&letter).copied().unwrap_or_default(),
            }
        });
    telling.filter(|votes| *votes != 0).min_by_key(|votes| votes.count_ones()).unwrap_or_default()
}

/// The stop words of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StopWords(u32);

impl StopWords {
    /// Returns the stop words of the language in which `text` is written; those of English if it tells none.
    ///
    /// A text in another script may have English words in it, which are no words of its own language.
    pub(crate) fn of(text: &str) -> Self {
        // One word is too little to take it for a stop word of another language: `todo` is not Spanish in most queries.
        let is_clear = |own: &Language| {
            own.bit() & Language::LATIN == 0
                || votes(tokens(text).map(|token| Word::new(token.text()))).of[*own as usize] > 1
        };
        let own = language(text).filter(is_clear).map_or(English.bit(), Language::bit);
        Self(if own & Language::LATIN == 0 { own | English.bit() } else { own })
    }

    /// Returns whether a normalized word is one of them.
    pub(crate) fn contains(self, word: &str) -> bool {
        STOPS.get(word).is_some_and(|languages| languages & self.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_its_language() {
        for (text, expected) in [
            ("The deployment is on Friday.", English),
            ("Die Häuser am Hafen sind alt.", German),
            ("Was hast du gestern gemacht?", German),
            ("Je ne sais pas où est la gare.", French),
            ("¿Dónde está el coche de mi hermano?", Spanish),
            ("Non so dove sono le chiavi della macchina.", Italian),
            ("Onde fica a casa do meu irmão?", Portuguese),
            ("Waar heb ik de sleutels gelaten?", Dutch),
            ("Var har du lagt nycklarna till huset?", Swedish),
            ("Hvor har du lagt nøglerne til huset af?", Danish),
            ("Hva har du gjort med nøklene mine?", Norwegian),
            ("Missä minun avaimet ovat?", Finnish),
            ("Gdzie są moje klucze do domu?", Polish),
            ("Kde jsou moje klíče od domu, když je nemám?", Czech),
            ("Hol van a ház kulcsa?", Hungarian),
            ("Unde sunt cheile de la casă?", Romanian),
            ("Evin anahtarları nerede, çok aradım ama yok.", Turkish),
            ("Di mana kunci rumah saya?", Indonesian),
            ("Chìa khóa nhà của tôi ở đâu?", Vietnamese),
            ("Где мои ключи от дома?", Russian),
            ("Привет", Russian),
            ("Де мої ключі від дому?", Ukrainian),
            ("أين مفاتيح البيت؟", Arabic),
            ("کلید خانه من کجاست؟", Persian),
            ("Πού είναι τα κλειδιά μου;", Greek),
            ("איפה המפתחות שלי?", Hebrew),
            ("मेरी चाबी कहाँ है?", Hindi),
            ("என் சாவி எங்கே?", Tamil),
            ("กุญแจบ้านอยู่ที่ไหน", Thai),
            ("집 열쇠가 어디에 있어요?", Korean),
            ("家の鍵はどこですか。", Japanese),
            ("我家的钥匙在哪里？", Chinese),
            ("这个 SQLite 数据库 is broken 怎么办", Chinese),
        ] {
            assert_eq!(language(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_without_evidence_has_no_language() {
        for text in
            ["", "42", "cargo build --release", "Kubernetes Postgres Redis", "in", "la", "c d"]
        {
            assert_eq!(language(text), None, "{text}");
        }
        let code = "x = parse(y); assert_eq!(x.len(), y.len()); ".repeat(20) + "das der";
        assert_eq!(language(&code), None);
    }

    #[test]
    fn stop_words_are_those_of_the_language_of_the_text() {
        let is_stop = |text: &str, word: &str| StopWords::of(text).contains(word);
        for (text, word, expected) in [
            ("what did they die of", "they", true),
            ("what did they die of", "die", false),
            ("wo ist die Katze", "die", true),
            ("wo ist die Katze", "of", false),
            ("waar is de hoe", "hoe", true),
            ("a hoe and an axe", "hoe", false),
            ("где the ключи", "the", true),
            ("Sicherheitsprüfung Todo hinzufügen", "todo", false),
            ("todo hinzu", "todo", false),
            ("being", "being", true),
            ("beings", "beings", false),
            ("", "the", true),
        ] {
            assert_eq!(is_stop(text, word), expected, "{text}: {word}");
        }
    }

    #[test]
    fn every_list_has_enough_words_and_every_language_its_place() {
        assert!(STOP_WORDS.iter().all(|(_, words)| words.split_whitespace().count() >= 40));
        assert!(Language::ALL.iter().enumerate().all(|(at, language)| *language as usize == at));
        assert!(STOPS.keys().all(|word| word.len() <= MAX_WORD_BYTES));
        let ascii: Vec<_> = STOPS.iter().filter(|(word, _)| word.is_ascii()).collect();
        let votes = |word: &str| SHORT_STOPS.votes(Word::new(word).short.unwrap());
        assert!(ascii.iter().all(|(word, expected)| votes(word) == **expected));
        assert_eq!(Language::LATIN.count_ones(), 18);
    }

    /// Every message is asked for its language when it is indexed.
    #[test]
    fn a_long_text_without_stop_words_is_read_in_part() {
        for word in ["xyzzy ", "ключ "] {
            let text = word.repeat(1_000_000);
            let mut read = 0;
            let words = tokens(&text).inspect(|_| read += 1);
            assert_ne!(votes(words.map(|token| Word::new(token.text()))).winner(), Some(English));
            assert_eq!(read, MAX_BYTES / word.len() + 1);
        }
    }
}
