//! The configuration: the example is complete and true, and what is unknown is refused by its name.

use std::fs;

use talktree_bot::config::{EXAMPLE, Provider, Secret};
use talktree_bot::{Config, Result};

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.toml");
    fs::write(&path, text).unwrap();
    let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Config::load(Some(&path), environment)
}

#[test]
fn the_example_has_every_setting_with_its_default() {
    assert_eq!(load(EXAMPLE, &[]).unwrap(), Config::default());
    assert_eq!(load("", &[]).unwrap(), Config::default());
    let names = [
        "store",
        "provider",
        "model",
        "base_url",
        "api_key_env",
        "api_timeout",
        "max_turns",
        "max_tokens",
        "compact_after",
        "system_file",
        "skills_dir",
        "knowledge_dir",
        "enabled",
        "expire_seconds",
        "api_url",
        "token",
        "poll_seconds",
        "edit_interval_ms",
        "group_edit_interval_ms",
        "max_parallel",
        "calls_per_second",
        "allowed_users",
        "listen",
        "level",
        "format",
        "bodies",
    ];
    let settings = EXAMPLE
        .lines()
        .filter(|line| !line.starts_with(['#', '[']))
        .filter(|line| line.contains(" = "));
    let settings: Vec<&str> = settings.filter_map(|line| line.split(" = ").next()).collect();
    assert_eq!(settings, names);
}

#[test]
fn an_unknown_setting_is_refused_by_its_name() {
    for (text, offender) in [
        ("sotre = 'x'", "sotre"),
        ("[agent]\nmodle = 'x'", "modle"),
        ("[agent.session]\nexpire = 1", "expire"),
        ("[telegramm]", "telegramm"),
        ("[agent]\nprovider = 'gpt'", "gpt"),
        ("[agent]\nmax_turns = 'many'", "agent.max_turns"),
    ] {
        let error = load(text, &[]).unwrap_err().to_string();
        assert!(error.contains(offender) && error.contains("bot.toml"), "{error}");
    }
}

#[test]
fn a_setting_that_cannot_be_used_is_refused() {
    for (text, part) in [
        ("[agent]\nmax_turns = 0", "max_turns is 0"),
        ("[agent]\napi_timeout = 3601", "api_timeout is 3601, over the limit of 3600"),
        ("[telegram]\npoll_seconds = 3601", "poll_seconds is 3601, over the limit of 3600"),
        ("[http]\nlisten = '0.0.0.0:9464'", "loopback"),
        ("[http]\nlisten = 'localhost'", "loopback"),
        ("store = ''", "store is empty"),
        ("[agent]\nbase_url = 'localhost:11434/v1'", "[agent] base_url is \"localhost:11434/v1\""),
        ("[agent]\nbase_url = 'http://my host/v1'", "[agent] base_url is"),
        ("[agent]\nbase_url = 'ftp://host/v1'", "[agent] base_url is"),
        ("[agent]\nbase_url = 'https://'", "[agent] base_url is"),
        ("[agent]\nbase_url = '/v1'", "[agent] base_url is"),
        ("[agent]\nbase_url = 'https://host/v1?key=x'", "[agent] base_url is"),
        ("[telegram]\napi_url = ''", "[telegram] api_url is \"\""),
        ("[telegram]\napi_url = 'api.telegram.org'", "[telegram] api_url is"),
        ("[telegram]\napi_url = 'http://[bad'", "[telegram] api_url is"),
        ("[telegram]\napi_url = ' https://host'", "[telegram] api_url is"),
        ("[log]\nlevel = 'infoo'", "[log] level is \"infoo\""),
        ("[agent]\nmax_turns = -1", "agent.max_turns"),
    ] {
        let error = load(text, &[]).unwrap_err().to_string();
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
    }
    assert!(load("[http]\nlisten = ''", &[]).is_ok());
    assert!(load("[telegram]\npoll_seconds = 3600", &[]).is_ok());
    for url in
        ["http://127.0.0.1:11434/v1", "https://host", "http://[::1]:80/v1/", "HTTPS://Host/a/b"]
    {
        assert!(load(&format!("[agent]\nbase_url = '{url}'"), &[]).is_ok(), "{url}");
    }
    for level in ["off", "debug", "info,ureq=debug", "talktree_bot=trace"] {
        assert!(load(&format!("[log]\nlevel = '{level}'"), &[]).is_ok(), "{level}");
    }
    let missing = Config::load(Some("/there/is/no/such.toml".as_ref()), []).unwrap_err();
    assert!(missing.to_string().contains("/there/is/no/such.toml"));
}

#[test]
fn the_environment_wins_and_is_checked_too() {
    let config = load(
        "[agent]\nprovider = 'ollama'\nmodel = 'small'",
        &[
            ("TALKTREE_BOT_STORE", "/data/bot.db"),
            ("TALKTREE_BOT_AGENT__MODEL", "7"),
            ("TALKTREE_BOT_AGENT__SESSION__EXPIRE_SECONDS", "60"),
            ("TALKTREE_BOT_TELEGRAM__ALLOWED_USERS", "[1, 2]"),
            ("TELEGRAM_TOKEN", "123:secret"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.store.to_str(), Some("/data/bot.db"));
    assert_eq!((config.agent.provider, config.agent.model.as_str()), (Provider::Ollama, "7"));
    assert_eq!(config.agent.session.expire_seconds, 60);
    assert_eq!(config.telegram.allowed_users, [1, 2]);
    assert_eq!(config.telegram.token, Secret::new("123:secret"));

    for (name, value) in [
        ("TALKTREE_BOT_AGENT__MODLE", "x"),
        ("TALKTREE_BOT_AGENT", "x"),
        ("TALKTREE_BOT_AGENT__MAX_TURNS", "many"),
        ("TALKTREE_BOT_AGENT__PROVIDER", "gpt"),
    ] {
        let error = load("", &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_token_is_not_shown() {
    let config = load("[telegram]\ntoken = '123:secret'", &[]).unwrap();
    assert!(!format!("{config:?}").contains("secret"));
    let error = load("[telegram]\ntoken = '123:secret'\nbots = 1", &[]).unwrap_err().to_string();
    assert!(!error.contains("secret"), "{error}");
    let error = load("[telegram]\ntoken = '123:secret", &[]).unwrap_err().to_string();
    assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    for url in [
        "ftp://user:secret@host/v1",
        "https://host/v1?key=secret",
        "https://host/v1#secret",
        "http://user:sec ret@host",
        "https://user:secret@/v1",
        "https://host/v1?key=a@secret",
    ] {
        for setting in ["[agent]\nbase_url", "[telegram]\napi_url"] {
            let error = load(&format!("{setting} = '{url}'"), &[]).unwrap_err().to_string();
            assert!(error.contains("_url is") && !error.contains("ret"), "{error}");
        }
    }
}
