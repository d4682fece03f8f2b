//! What each character is: part of a word, a word by itself, a mark of the character before it, or between words.
//!
//! The standard library and `unicode-normalization` know letters, cases and marks. Here is what they do not know: which scripts are
//! written without spaces, the digits of each script, and the simplified variant of a Han character.
//!
//! Invariant: each table is sorted, and its ranges do not overlap.

use std::sync::LazyLock;

use unicode_normalization::char::is_combining_mark;

/// Returns whether `c` is a word by itself: a character of a script that is written without spaces, or a symbol.
pub fn is_unigram(c: char) -> bool {
    // Most text is below the first range, and most Chinese text in a range that needs no table.
    let code = u32::from(c);
    code >= 0xA6 && ((0x4E00..=0x9FFF).contains(&code) || is_in_table(code))
}

fn is_in_table(code: u32) -> bool {
    let at = UNIGRAMS.partition_point(|&(_, last)| last < code);
    UNIGRAMS.get(at).is_some_and(|&(first, _)| first <= code)
}

/// Returns whether `c` is white space or a control character.
///
/// No control character is part of a word, and none may reach an engine or a terminal.
pub fn is_space_or_control(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether `c` belongs to the character before it: a mark, or a sign that is not seen.
pub(crate) fn is_attached(c: char) -> bool {
    !c.is_ascii()
        && (matches!(c, '\u{AD}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{FF9E}' | '\u{FF9F}')
            // Conjoining vowels and final consonants of Hangul.
            || matches!(c, '\u{1160}'..='\u{11FF}')
            || is_combining_mark(c))
}

/// Returns whether `c` is a letter or digit of a word. Marks follow one.
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        c.is_alphanumeric() && !is_unigram(c) && !is_attached(c)
    }
}

/// Returns the digit that a character of any script is.
pub(crate) fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let before = ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?;
    char::from_digit(code - ZEROS[before], 10)
}

/// The first Han character of the main block, and how many there are.
const HAN: u32 = 0x4E00;
const HAN_COUNT: usize = 0x5200;

/// The simplified variant of each Han character of the main block; 0 for most.
static SIMPLE: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut simple = vec![0; HAN_COUNT];
    for (traditional, simplified) in TRADITIONAL.chars().zip(SIMPLIFIED.chars()) {
        simple[(u32::from(traditional) - HAN) as usize] = u32::from(simplified) as u16;
    }
    simple
});

/// Returns the simplified variant of a Han character; most are their own.
pub(crate) fn simplified(c: char) -> char {
    let place = u32::from(c).checked_sub(HAN).and_then(|place| SIMPLE.get(place as usize));
    match place {
        Some(&simple) if simple != 0 => char::from_u32(u32::from(simple)).unwrap_or(c),
        _ => c,
    }
}

/// The unigrams: characters of scripts written without spaces, and symbols.
///
/// Scripts: Thai, Lao, Tibetan, Myanmar (0E00..), Hangul jamo (1100..), Khmer (1780..), Tai Le, New Tai Lue, Khmer
/// symbols, Buginese, Tai Tham (1950..), Balinese (1B00..), CJK radicals, kana, Bopomofo, Han, Yi (2E50..A4CF, with
/// the marks 々 〆 〇 ー), Hangul jamo A, Javanese, Myanmar A and B, Tai Viet (A960..AADF), Hangul syllables and jamo B
/// (AC00..), compatibility ideographs (F900..), halfwidth kana and jamo (FF66..), Ahom (11700..), Tangut, Khitan,
/// Nushu, supplementary kana (16FE0..1B2FF), the two supplementary ideographic planes (20000..). Bopomofo's tone marks
/// (02C7, 02CA, 02CB) go with it.
///
/// Symbols: the category So, and all of 1F000..1FBEF (emoji with skin tones and regional indicators). Two ranges are
/// joined where no character between them is part of a word.
#[rustfmt::skip]
const UNIGRAMS: &[(u32, u32)] = &[
    (0x00A6, 0x00A9), (0x00AE, 0x00B0), (0x02C7, 0x02C7), (0x02CA, 0x02CB), (0x0482, 0x0482), (0x058D, 0x058E),
    (0x060E, 0x060F), (0x06DE, 0x06DE), (0x06E9, 0x06E9), (0x06FD, 0x06FE), (0x07F6, 0x07F6), (0x09FA, 0x09FA),
    (0x0B70, 0x0B70), (0x0BF3, 0x0BFA), (0x0C7F, 0x0C7F), (0x0D4F, 0x0D4F), (0x0D79, 0x0D79), (0x0E00, 0x0E4F),
    (0x0E5A, 0x0ECF), (0x0EDA, 0x0F1F), (0x0F2A, 0x103F), (0x104A, 0x108F), (0x109A, 0x109F), (0x1100, 0x11FF),
    (0x1390, 0x1399), (0x166D, 0x166D), (0x1780, 0x17DF), (0x17EA, 0x17FF), (0x1940, 0x1940), (0x1950, 0x19CF),
    (0x19DA, 0x1A7F), (0x1A8A, 0x1A8F), (0x1A9A, 0x1AAF), (0x1B00, 0x1B4F), (0x1B5A, 0x1B7F), (0x2100, 0x2101),
    (0x2103, 0x2106), (0x2108, 0x2109), (0x2114, 0x2114), (0x2116, 0x2117), (0x211E, 0x2123), (0x2125, 0x2125),
    (0x2127, 0x2127), (0x2129, 0x2129), (0x212E, 0x212E), (0x213A, 0x213B), (0x214A, 0x214D), (0x214F, 0x214F),
    (0x218A, 0x244A), (0x249C, 0x24E9), (0x2500, 0x2767), (0x2794, 0x28FF), (0x2B00, 0x2BFF), (0x2CE5, 0x2CEA),
    (0x2E50, 0xA4CF), (0xA828, 0xA82B), (0xA836, 0xA839), (0xA960, 0xA9CF), (0xA9DA, 0xA9EF), (0xA9FA, 0xA9FF),
    (0xAA60, 0xAADF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFD40, 0xFD4F), (0xFDCF, 0xFDCF), (0xFDFD, 0xFDFF),
    (0xFF66, 0xFFFD), (0x10137, 0x1013F), (0x10179, 0x10189), (0x1018C, 0x101FC), (0x10877, 0x10878),
    (0x10AC8, 0x10AC8), (0x11700, 0x1172F), (0x1173A, 0x1174F), (0x11FD5, 0x11FF1), (0x16B3C, 0x16B3F),
    (0x16B45, 0x16B45), (0x16FE0, 0x18DFF), (0x1AFF0, 0x1B2FF), (0x1BC9C, 0x1BC9C), (0x1CF50, 0x1D164),
    (0x1D16A, 0x1D16C), (0x1D183, 0x1D184), (0x1D18C, 0x1D1A9), (0x1D1AE, 0x1D241), (0x1D245, 0x1D245),
    (0x1D300, 0x1D356), (0x1D800, 0x1D9FF), (0x1DA37, 0x1DA3A), (0x1DA6D, 0x1DA74), (0x1DA76, 0x1DA83),
    (0x1DA85, 0x1DA86), (0x1E14F, 0x1E14F), (0x1ECAC, 0x1ECAC), (0x1ED2E, 0x1ED2E), (0x1F000, 0x1FBEF),
    (0x20000, 0x3FFFD),
];

/// The digit zero of each script but ASCII; nine more digits follow it.
#[rustfmt::skip]
const ZEROS: &[u32] = &[
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6, 0x0E50,
    0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50,
    0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136,
    0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0,
    0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// The 1747 commonest traditional characters (level 1 of Big5) whose simplified variant is in GB 2312.
///
/// From the field `kSimplifiedVariant` of Unihan 10; of a character with several variants, the one of the standard list.
/// [`SIMPLIFIED`] has the variants in the same order. No character is in both.
const TRADITIONAL: &str = "\
丟並乾亂亞佇併來侖侶係俠倀倆倉個們倫偉側偵偽傑傖傘備傭傯傳債傷傾僅僑僕僥價儀儂億儈儉儐儔儕儘償優儲儷儻儼兌兒兗內兩冊\
冪凍凜凱別刪則剋剎剛剝剴創劃劇劉劊劍劑勁動務勛勝勞勢勵勸勻匯匱區協卻厭厲參叢吒吳吶呂員問啞啟喚喪喬單喲嗆嗇嗎嗚嗶嘆嘍\
嘔嘖嘗嘩嘮嘯嘰噓噥噯噴噸噹嚀嚇嚕嚨嚴嚶囀囁囂囈囑囪國圍園圓圖團執堅堊堝堯報場塊塋塒塗塢塵塹墊墜墮墳墾壇壓壘壙壞壟壢壩\
壯壺壽夠夢夾奐奧奩奪奮妝姍姦娛婁婦媧媼媽嫗嫵嫻嬈嬋嬌嬤嬪嬰嬸孫學孿宮寢實寧審寫寬寵寶將專尋對導尷屆屍屜屢層屨屬岡峴島\
峽崗崢嵐嶄嶇嶸嶺嶼巒巔帥師帳帶幀幃幗幟幣幫幹幾庫廁廂廄廈廚廝廟廠廢廣廬廳弒張強彈彌彎彙彥後徑從徠復徹恆恥悅悵悶惡惱惻\
愛愜愴愷愾慄態慍慘慚慟慣慫慮慶憂憊憐憑憚憤憫憮憲憶懇應懍懣懲懶懷懸懺懼懾戀戰戲戶拋挾捨捫掃掄掙掛採揀揚換揮損搖搗搶摑\
摟摯摻撈撐撓撥撫撲撳撻撾撿擁擄擇擊擋擔據擠擬擰擱擲擴擷擺擻擾攆攏攔攙攜攝攣攤攪攬敗敘敵數斂斃斕斬斷於時晉晝暈暉暢暫曄\
曆曇曉曖曠曬書會朧東柵桿梔條梟棄棗棟棧棲楊楓楨業極榮構槍槨槳樁樂樅樓標樞樣樸樹樺橈橋機橢橫檔檜檢檣檯檳檸檻櫃櫓櫚櫛櫝\
櫥櫬櫻欄權欖欽歐歟歡歲歷歸歿殘殤殮殯殲殺殼毀毆氈氣氫氬氳決沒沖況洶浹涇涼淚淪淵淺渙減渦測渾湊湯準溝溫滄滅滌滬滯滲滾滿\
漁漢漣漬漲漸漿潑潔潛潤潯潰澀澆澗澠澤澱濁濃濕濘濟濤濫濰濱濺濾瀆瀉瀋瀏瀕瀘瀝瀟瀨瀲瀾灑灘灣灤災為烏無煉煙煥煩煬熒熱熾燈\
燒燙燜營燦燭燴燼燾爍爐爛爭爺爾牆牘牽犖犢犧狀狹狽猙猶獄獅獎獨獰獲獵獷獸獺獻玀現琺琿瑣瑤瑩瑪璣璦環璽瓊瓏瓔瓚甌產畝畢畫\
異當疇疊痙瘋瘍瘓瘡瘧瘺療癆癘癟癢癥癩癬癮癱癲發皚皰皺盜盞盡監盤盧盪眾睏睜睞瞞瞼矚矯硯碩確碼磚磧磯礎礙礦礪礫礬祿禍禎禦\
禪禮禱禿秈稅稈稟種稱穀穌積穎穡穢穩穫窩窪窮窯窺竄竅竇竊競筆筍筧箋箏節範築篤篩簍簞簡簣簫簽簾籃籌籟籠籬籮粵糝糞糧糾紀紂\
約紅紆紇紉紋納紐純紕紗紙級紛紜紡細紱紲紳紹紼絀終組絆結絕絛絞絡絢給絨統絲絳絹綁綏經綜綞綠綢綬維綰綱網綴綸綺綻綽綾綿緇\
緊緒緘緙線緝緞締緣編緩緬緯緲練緹緻縈縉縊縐縑縛縝縞縣縫縮縱縲縵縷縹總績繃繅繆繒織繕繚繞繡繩繪繫繭繳繹繼繽續纏纓纖纜缽\
罈罌罰罵罷羅羈羋義習翹聖聞聯聰聲聳聶職聽聾肅脅脈脫脹腎腦腫腳腸膚膠膩膽膾膿臉臍臏臘臚臟臨臺與興舉舊艙艦艱艷芻苧茲荊莊\
莖莢莧華萇萊萬萵葉著葦葷蒞蒼蓀蓋蓮蔣蔥蔭蕩蕪蕭薊薔薦薩薺藍藝藥藪藹藺蘆蘇蘊蘋蘚蘭蘿處虛虜號虧蛻蜆蝕蝦蝸螞螢螻蟈蟬蟯蟲\
蟻蠅蠟蠣蠱蠶蠻術衛衝袞裊補裝裡製複褲褸褻襖襠襤襪襯襲覆見規覓視覦親覬覲覺覽觀觴觸訂訃計訊訌討訐訓訕訖記訛訝訟訣訥訪設\
許訴訶診註詁詆詐詔評詛詞詠詢詣試詩詫詬詭詮詰話該詳詼誅誇誌認誑誕誘誚語誠誡誣誤誥誦誨說誰課誶誹誼調諂諄談諉請諍諒論諛\
諜諦諧諫諭諮諱諳諶諷諸諺諼諾謀謁謂謄謊謎謐謗謙講謝謠謨謫謬謹證譎譏識譙譚譜譫譯議譴護譽讀變讒讓讖讜豈豎豐豬貓貝貞負財\
貢貧貨販貪貫責貯貲貳貴貶買貸費貼貽貿賀賁賂賃賄賅資賈賊賑賒賓賜賞賠賡賢賣賤賦質賬賭賴賺賻購賽贅贈贊贍贏贓贖贗贛趕趙趨\
跡踐踴蹕蹣蹤蹺躉躊躋躍躑躓躡躪軀車軋軌軍軒軔軛軟軸軻軼軾較載輊輒輓輔輕輛輜輝輞輟輥輦輩輪輯輳輸輻輾輿轂轄轅轉轍轎轔轟\
轡辦辭辮辯農逕這連進運過達違遙遜遞遠適遲遷選遺遼邁還邇邊邏邐郵鄉鄒鄧鄭鄰鄴酈醜醞醫醬釀釁釅釋釐釗釘釙針釣釧釩釵鈉鈍鈐\
鈑鈔鈕鈞鈣鈴鈷鈸鈹鈽鈾鈿鉀鉅鉉鉍鉑鉗鉚鉛鉤鉸鉻銀銅銑銓銖銘銜銨銬銳銷銻銼鋁鋅鋇鋒鋤鋪鋰鋸鋼錄錐錕錘錙錚錠錢錦錨錫錮錯\
錳錶鍋鍍鍔鍛鍥鍬鍰鍵鍾鎂鎊鎖鎘鎢鎬鎮鎰鎳鏃鏈鏍鏑鏗鏘鏜鏝鏟鏡鏢鏤鏨鏽鐃鐘鐫鐮鐲鐳鐵鐸鐺鑄鑒鑠鑣鑰鑲鑷鑼鑽鑾鑿長門閂閃\
閉開閎閏閑間閔閘閡閣閥閨閩閭閱閻闆闈闊闋闌闐闔闕闖關闡阪陘陝陣陰陳陸陽隊階隕際隨險隱隴隸隻雋雖雙雛雜雞離難雲電霧霽靂\
靄靈靜靦靨鞏韁韃韉韋韌韓韜韻響頁頂頃項順須頊頌預頑頒頓頗領頜頡頤頭頰頷頸頹頻顆題額顎顏顓願顛類顥顧顫顯顰顱風颯颱颳颶\
颼飄飛飢飩飪飭飯飲飴飼飽飾餃餅餉養餌餒餓餘餚餛餞餡館餾餿饅饉饒饗饜饞馬馭馮馱馳馴駁駐駑駒駕駙駛駝駟駢駭駱駿騁騎騖騙騫\
騰騷騾驀驃驅驍驕驗驚驛驟驢驥驪骯髏髒體髖髮鬆鬍鬚鬢鬥鬧鬱魎魘魚魯魷鮑鮪鮫鮭鮮鯀鯉鯊鯖鯛鯧鯨鯽鰍鰓鰥鰭鰱鰻鰾鱉鱔鱖鱗鱟\
鱷鱸鳥鳩鳳鳴鳶鴆鴉鴕鴛鴣鴦鴨鴻鴿鵑鵝鵠鵡鵪鵬鵲鶉鶯鶴鷂鷓鷗鷥鷹鷺鸚鸛鸞鹵鹹鹼鹽麗麥麩麵麼黃黌點黨黷鼴齊齋齒齜齟齡齦齪\
齬齲齷龍龐龔龜";

const SIMPLIFIED: &str = "\
丢并干乱亚伫并来仑侣系侠伥俩仓个们伦伟侧侦伪杰伧伞备佣偬传债伤倾仅侨仆侥价仪侬亿侩俭傧俦侪尽偿优储俪傥俨兑儿兖内两册\
幂冻凛凯别删则克刹刚剥剀创划剧刘刽剑剂劲动务勋胜劳势励劝匀汇匮区协却厌厉参丛咤吴呐吕员问哑启唤丧乔单哟呛啬吗呜哔叹喽\
呕啧尝哗唠啸叽嘘哝嗳喷吨当咛吓噜咙严嘤啭嗫嚣呓嘱囱国围园圆图团执坚垩埚尧报场块茔埘涂坞尘堑垫坠堕坟垦坛压垒圹坏垄坜坝\
壮壶寿够梦夹奂奥奁夺奋妆姗奸娱娄妇娲媪妈妪妩娴娆婵娇嬷嫔婴婶孙学孪宫寝实宁审写宽宠宝将专寻对导尴届尸屉屡层屦属冈岘岛\
峡岗峥岚崭岖嵘岭屿峦巅帅师帐带帧帏帼帜币帮干几库厕厢厩厦厨厮庙厂废广庐厅弑张强弹弥弯汇彦后径从徕复彻恒耻悦怅闷恶恼恻\
爱惬怆恺忾栗态愠惨惭恸惯怂虑庆忧惫怜凭惮愤悯怃宪忆恳应懔懑惩懒怀悬忏惧慑恋战戏户抛挟舍扪扫抡挣挂采拣扬换挥损摇捣抢掴\
搂挚掺捞撑挠拨抚扑揿挞挝捡拥掳择击挡担据挤拟拧搁掷扩撷摆擞扰撵拢拦搀携摄挛摊搅揽败叙敌数敛毙斓斩断于时晋昼晕晖畅暂晔\
历昙晓暧旷晒书会胧东栅杆栀条枭弃枣栋栈栖杨枫桢业极荣构枪椁桨桩乐枞楼标枢样朴树桦桡桥机椭横档桧检樯台槟柠槛柜橹榈栉椟\
橱榇樱栏权榄钦欧欤欢岁历归殁残殇殓殡歼杀壳毁殴毡气氢氩氲决没冲况汹浃泾凉泪沦渊浅涣减涡测浑凑汤准沟温沧灭涤沪滞渗滚满\
渔汉涟渍涨渐浆泼洁潜润浔溃涩浇涧渑泽淀浊浓湿泞济涛滥潍滨溅滤渎泻沈浏濒泸沥潇濑潋澜洒滩湾滦灾为乌无炼烟焕烦炀荧热炽灯\
烧烫焖营灿烛烩烬焘烁炉烂争爷尔墙牍牵荦犊牺状狭狈狰犹狱狮奖独狞获猎犷兽獭献猡现珐珲琐瑶莹玛玑瑷环玺琼珑璎瓒瓯产亩毕画\
异当畴叠痉疯疡痪疮疟瘘疗痨疠瘪痒症癞癣瘾瘫癫发皑疱皱盗盏尽监盘卢荡众困睁睐瞒睑瞩矫砚硕确码砖碛矶础碍矿砺砾矾禄祸祯御\
禅礼祷秃籼税秆禀种称谷稣积颖穑秽稳获窝洼穷窑窥窜窍窦窃竞笔笋笕笺筝节范筑笃筛篓箪简篑箫签帘篮筹籁笼篱箩粤糁粪粮纠纪纣\
约红纡纥纫纹纳纽纯纰纱纸级纷纭纺细绂绁绅绍绋绌终组绊结绝绦绞络绚给绒统丝绛绢绑绥经综缍绿绸绶维绾纲网缀纶绮绽绰绫绵缁\
紧绪缄缂线缉缎缔缘编缓缅纬缈练缇致萦缙缢绉缣缚缜缟县缝缩纵缧缦缕缥总绩绷缫缪缯织缮缭绕绣绳绘系茧缴绎继缤续缠缨纤缆钵\
坛罂罚骂罢罗羁芈义习翘圣闻联聪声耸聂职听聋肃胁脉脱胀肾脑肿脚肠肤胶腻胆脍脓脸脐膑腊胪脏临台与兴举旧舱舰艰艳刍苎兹荆庄\
茎荚苋华苌莱万莴叶着苇荤莅苍荪盖莲蒋葱荫荡芜萧蓟蔷荐萨荠蓝艺药薮蔼蔺芦苏蕴苹藓兰萝处虚虏号亏蜕蚬蚀虾蜗蚂萤蝼蝈蝉蛲虫\
蚁蝇蜡蛎蛊蚕蛮术卫冲衮袅补装里制复裤褛亵袄裆褴袜衬袭复见规觅视觎亲觊觐觉览观觞触订讣计讯讧讨讦训讪讫记讹讶讼诀讷访设\
许诉诃诊注诂诋诈诏评诅词咏询诣试诗诧诟诡诠诘话该详诙诛夸志认诳诞诱诮语诚诫诬误诰诵诲说谁课谇诽谊调谄谆谈诿请诤谅论谀\
谍谛谐谏谕谘讳谙谌讽诸谚谖诺谋谒谓誊谎谜谧谤谦讲谢谣谟谪谬谨证谲讥识谯谭谱谵译议谴护誉读变谗让谶谠岂竖丰猪猫贝贞负财\
贡贫货贩贪贯责贮赀贰贵贬买贷费贴贻贸贺贲赂赁贿赅资贾贼赈赊宾赐赏赔赓贤卖贱赋质账赌赖赚赙购赛赘赠赞赡赢赃赎赝赣赶赵趋\
迹践踊跸蹒踪跷趸踌跻跃踯踬蹑躏躯车轧轨军轩轫轭软轴轲轶轼较载轾辄挽辅轻辆辎辉辋辍辊辇辈轮辑辏输辐辗舆毂辖辕转辙轿辚轰\
辔办辞辫辩农迳这连进运过达违遥逊递远适迟迁选遗辽迈还迩边逻逦邮乡邹邓郑邻邺郦丑酝医酱酿衅酽释厘钊钉钋针钓钏钒钗钠钝钤\
钣钞钮钧钙铃钴钹铍钸铀钿钾钜铉铋铂钳铆铅钩铰铬银铜铣铨铢铭衔铵铐锐销锑锉铝锌钡锋锄铺锂锯钢录锥锟锤锱铮锭钱锦锚锡锢错\
锰表锅镀锷锻锲锹锾键钟镁镑锁镉钨镐镇镒镍镞链镙镝铿锵镗镘铲镜镖镂錾锈铙钟镌镰镯镭铁铎铛铸鉴铄镳钥镶镊锣钻銮凿长门闩闪\
闭开闳闰闲间闵闸阂阁阀闺闽闾阅阎板闱阔阕阑阗阖阙闯关阐坂陉陕阵阴陈陆阳队阶陨际随险隐陇隶只隽虽双雏杂鸡离难云电雾霁雳\
霭灵静腼靥巩缰鞑鞯韦韧韩韬韵响页顶顷项顺须顼颂预顽颁顿颇领颌颉颐头颊颔颈颓频颗题额颚颜颛愿颠类颢顾颤显颦颅风飒台刮飓\
飕飘飞饥饨饪饬饭饮饴饲饱饰饺饼饷养饵馁饿余肴馄饯馅馆馏馊馒馑饶飨餍馋马驭冯驮驰驯驳驻驽驹驾驸驶驼驷骈骇骆骏骋骑骛骗骞\
腾骚骡蓦骠驱骁骄验惊驿骤驴骥骊肮髅脏体髋发松胡须鬓斗闹郁魉魇鱼鲁鱿鲍鲔鲛鲑鲜鲧鲤鲨鲭鲷鲳鲸鲫鳅鳃鳏鳍鲢鳗鳔鳖鳝鳜鳞鲎\
鳄鲈鸟鸠凤鸣鸢鸩鸦鸵鸳鸪鸯鸭鸿鸽鹃鹅鹄鹉鹌鹏鹊鹑莺鹤鹞鹧鸥鸶鹰鹭鹦鹳鸾卤咸硷盐丽麦麸面么黄黉点党黩鼹齐斋齿龇龃龄龈龊\
龉龋龌龙庞龚龟";
