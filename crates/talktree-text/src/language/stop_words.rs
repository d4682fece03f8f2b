//! The stop words of each language.
//!
//! Stop words are compared by spelling, not by stem: `being` and `be` are stop words of English, `beings` is not. Each
//! list is that of one language, because one language's stop word is another one's noun: German `die`, Dutch `hoe`,
//! English `die` and `hoe`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Language::{self, *};
use super::{language, votes};
use crate::token::{normal_form, tokens};

/// The longest stop word, in bytes.
const MAX_WORD_BYTES: usize = 24;

/// The languages that their stop words tell, with these words.
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
            *stops.entry(token.form().into_owned()).or_default() |= language.bit();
        }
    }
    stops
});

/// Returns the languages that have the word as a stop word.
pub(super) fn stop_votes(word: &str) -> u32 {
    if word.len() > MAX_WORD_BYTES {
        return 0;
    }
    STOPS.get(normal_form(word).as_ref()).copied().unwrap_or_default()
}

/// The stop words of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopWords(u32);

impl StopWords {
    /// Returns the stop words of the language in which `text` is written; those of English if it tells none.
    ///
    /// A text in another script may have English words in it, which are no words of its own language.
    #[must_use]
    pub fn of(text: &str) -> Self {
        // One word is too little to take it for a stop word of another language: `todo` is not Spanish in most queries.
        let is_clear = |own: &Language| {
            own.bit() & Language::LATIN == 0
                || votes(tokens(text).map(|token| token.text())).of[*own as usize] > 1
        };
        let own = language(text).filter(is_clear).map_or(English.bit(), Language::bit);
        Self(if own & Language::LATIN == 0 { own | English.bit() } else { own })
    }

    /// Returns whether a normalized word is one of them.
    #[must_use]
    pub fn contains(self, word: &str) -> bool {
        STOPS.get(word).is_some_and(|languages| languages & self.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Language::LATIN.count_ones(), 18);
    }
}
