//! How requests are signed, as far as setting up a test needs it.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};

use crate::http::{Asked, decode};

/// The headers whose values come first in what Azure's shared key signs, in this order.
const SIGNED_FIRST: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// Returns the `Authorization` that Azure's shared key gives a request; its date is in the headers.
pub(crate) fn shared_key(account: &str, key: &str, asked: &Asked) -> String {
    let mut text = asked.method.clone();
    for name in SIGNED_FIRST {
        text.push('\n');
        match name {
            "content-length" if asked.body.is_empty() => {}
            "content-length" => text.push_str(&asked.body.len().to_string()),
            _ => text.push_str(asked.headers.get(name).unwrap_or_default()),
        }
    }
    let mut own: Vec<_> = asked.headers.0.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
    own.sort();
    for (name, value) in own {
        text.push_str(&format!("\n{name}:{}", value.trim()));
    }
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    text.push_str(&format!("\n/{account}{path}"));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name).to_lowercase(), decode(value)))
        .collect();
    pairs.sort();
    for (name, value) in pairs {
        text.push_str(&format!("\n{name}:{value}"));
    }
    format!("SharedKey {account}:{}", with_account_key(key, &text))
}

/// Returns a shared access signature for everything in an account, as a query without its question mark.
pub(crate) fn account_sas(account: &str, key: &str, from: Timestamp, until: Timestamp) -> String {
    let (permissions, services, resources, version) = ("rwdlacup", "b", "sco", "2018-03-28");
    let time = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (from, until) = (time(from), time(until));
    let text = format!(
        "{account}\n{permissions}\n{services}\n{resources}\n{from}\n{until}\n\nhttps,http\n{version}\n"
    );
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!(
        "sv={version}&ss={services}&srt={resources}&sp={permissions}&st={}&se={}&spr=https%2Chttp&sig={}",
        encoded(&from),
        encoded(&until),
        encoded(&with_account_key(key, &text)),
    )
}

fn with_account_key(key: &str, text: &str) -> String {
    let key = STANDARD.decode(key).expect("an account's key is base64");
    STANDARD.encode(sign(&Key::new(HMAC_SHA256, &key), text.as_bytes()))
}

/// Returns a token whose signature cannot be verified.
pub(crate) fn unsigned_token(claims: &str) -> String {
    let header = r#"{"alg":"RS256","typ":"JWT"}"#;
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(header), part(claims), part("no signature"))
}

/// Signs an S3 request, version 4: adds the headers that this takes.
pub(crate) fn s3([region, key_id, secret]: [&str; 3], host: &str, asked: &mut Asked) {
    let now = Timestamp::now();
    let (day, time) = (now.strftime("%Y%m%d").to_string(), now.strftime("%Y%m%dT%H%M%SZ").to_string());
    let body = hex(digest(&SHA256, &asked.body).as_ref());
    asked.headers.set("host", host);
    asked.headers.set("x-amz-content-sha256", body.clone());
    asked.headers.set("x-amz-date", time.clone());
    let mut signed = asked.headers.0.clone();
    signed.sort();
    let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let signed: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let mut query: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    query.sort();
    let canonical = format!("{}\n{path}\n{}\n{signed}\n{names}\n{body}", asked.method, query.join("&"));
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text =
        format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [day.as_str(), region, "s3", "aws4_request", &text] {
        key = sign(&Key::new(HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={}",
        hex(&key)
    );
    asked.headers.set("authorization", authorization);
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
