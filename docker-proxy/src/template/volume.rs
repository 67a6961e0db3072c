//! Writes the request for a workspace's volume: the only driver option is its size, because others can name
//! any folder of the machine.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Labels, compare::compare, labels, read};
use crate::{name, refusal::Refusal, settings::Settings};

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct VolumeRequest {
    name: String,
    labels: Labels,
    driver_opts: Option<Options>,
}

/// The options for the driver.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Options {
    /// The size in bytes.
    size: Option<String>,
}

/// Returns the name of the volume, and the request that creates it.
pub(crate) fn volume(body: &[u8], settings: &Settings) -> Result<(String, Value), Refusal> {
    let (whole, asked) = read::<VolumeRequest>(body)?;
    let Some(sandbox) = name::sandbox_of_volume(&asked.name) else {
        let remedy = "volumes are called `sepal-ws-sbx_<32 hexadecimal digits>`";
        return Err(Refusal::field("Name", remedy));
    };
    let options = match asked.driver_opts.and_then(|options| options.size) {
        None => json!({}),
        Some(size) => json!({ "size": checked(&size, settings.most.file_bytes)? }),
    };
    let made = json!({
        "Name": asked.name,
        "Driver": "local",
        "DriverOpts": options,
        "Labels": labels(asked.labels, sandbox, &settings.label)?,
    });
    compare(&whole, &made)?;
    Ok((asked.name, made))
}

/// Checks a size in plain bytes. A volume may hold twice as much as one file: a workspace may be that large
/// while somebody clears up.
fn checked(size: &str, largest_file: i64) -> Result<&str, Refusal> {
    let most = largest_file.saturating_mul(2);
    let is_plain = size.bytes().all(|letter| letter.is_ascii_digit());
    match size.parse::<i64>() {
        Ok(bytes) if is_plain && (1..=most).contains(&bytes) => Ok(size),
        _ => {
            let remedy = format!("it may be a number of bytes from 1 to {most}");
            Err(Refusal::field("DriverOpts.size", remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::settings;

    fn check(change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let sandbox = "sbx_0000000000000000000000000000000a";
        let mut asked = json!({
            "Name": format!("sepal-ws-{sandbox}"),
            "Labels": { "sepal.sandbox": sandbox, "sepal.installation": "x" },
        });
        change(&mut asked);
        let made = volume(asked.to_string().as_bytes(), &settings());
        made.map(|(_, made)| made).map_err(|it| it.to_string())
    }

    #[test]
    fn a_plain_volume_gets_our_label() {
        let made = check(|_| {}).unwrap();
        assert_eq!(made["Driver"], "local");
        assert_eq!(made["DriverOpts"], json!({}));
        assert_eq!(made["Labels"]["sepal.proxy"], "test");
        assert_eq!(made["Labels"]["sepal.installation"], "x");
    }

    #[test]
    fn a_volume_may_be_held_to_a_size() {
        let sized = |size: &str| check(|it| it["DriverOpts"] = json!({ "size": size }));
        let most = settings().most.file_bytes * 2;
        for size in [1, 1 << 20, most] {
            let made = sized(&size.to_string()).unwrap();
            assert_eq!(made["DriverOpts"], json!({ "size": size.to_string() }));
        }
        for size in [
            "0",
            "-1",
            "+5",
            "1g",
            "",
            "99999999999999999999",
            &(most + 1).to_string(),
        ] {
            let text = sized(size).unwrap_err();
            assert!(text.contains("`DriverOpts.size`"), "{text}");
        }
        let beside = json!({ "size": "5", "device": "/etc" });
        let text = check(|it| it["DriverOpts"] = beside).unwrap_err();
        assert!(text.contains("`DriverOpts.device`"), "{text}");
    }

    #[test]
    fn what_reaches_out_is_refused_by_name() {
        let check = |change: fn(&mut Value), expected: &str| {
            let text = check(change).unwrap_err();
            assert!(text.contains(expected), "{text}");
        };
        check(
            |it| it["DriverOpts"] = json!({ "type": "none", "o": "bind", "device": "/etc" }),
            "`DriverOpts.",
        );
        check(|it| it["Driver"] = json!("sshfs"), "`Driver`");
        check(
            |it| it["ClusterVolumeSpec"] = json!({}),
            "`ClusterVolumeSpec`",
        );
        check(|it| it["Name"] = json!("data"), "`Name`");
        check(
            |it| it["Labels"]["sepal.sandbox"] = json!("sbx_1"),
            "`Labels.sepal.sandbox`",
        );
        check(
            |it| it["Labels"]["sepal.proxy"] = json!("other"),
            "`Labels.sepal.proxy`",
        );
        check(
            |it| it["Labels"]["com.docker.x"] = json!("y"),
            "`Labels.com.docker.x`",
        );
        check(|it| it["Name"] = json!(5), "Name");
    }
}
