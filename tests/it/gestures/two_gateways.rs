//! A gesture is asked at one gateway, made at the other, and used once at either.

use serde_json::json;

use super::{person, shown, sign_everything, yes};
use crate::model_stub::Reply;
use crate::replicas::Pair;
use crate::support::TestSocket;

#[tokio::test]
async fn a_gesture_counts_once_whichever_gateway_takes_it() {
    let pair = Pair::start_tuned(&[("SPL_SANDBOX", "bubblewrap")], sign_everything).await;
    let (at_a, key) = person(&pair.a, "acme", "ana").await;
    let mut passkey = at_a.add_passkey().await;
    let at_b = at_a.moved_to(&pair.b);
    let mut socket = TestSocket::open(pair.a.address, &key, Some("sign")).await;
    let two = ["date", "ls"].map(|command| ("execute_command", json!({ "command": command })));
    pair.a.model.then(Reply::answer("", &two)).then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let (session, calls) = (socket.session(), shown(&socket, &card));
    // The same answer twice at the same moment.
    let options = at_a.challenge(&calls).await;
    passkey.count += 1;
    let body = json!({ "credential": passkey.get(&options) });
    let (one, two) = tokio::join!(
        at_a.post("/api/gestures", &body),
        at_a.post("/api/gestures", &body)
    );
    let mut statuses = [one.0, two.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403], "one challenge, one gesture");
    // Neither gateway waits until it has heard of what was decided at the other one.
    for (here, there) in [(&at_a, &at_b), (&at_b, &at_a), (&at_a, &at_b)] {
        let proof = there.by_password(&calls).await;
        let decision = yes(&card, &proof);
        let (status, answer) = here.decide(&session, &decision).await;
        assert_eq!(status, 202, "{answer}");
        let back = json!({ "callId": card["callId"], "approved": false, "takeBack": true });
        let (status, answer) = there.decide(&session, &back).await;
        assert_eq!(status, 202, "{answer}");
        for browser in [here, there] {
            let (status, problem) = browser.decide(&session, &decision).await;
            let refused = (403, &json!("gesture_required"));
            assert_eq!((status, &problem["code"]), refused, "{problem}");
        }
    }
    // Two gateways at the same moment.
    let proof = at_a.by_password(&json!([])).await;
    let body = json!({ "gesture": proof });
    let (one, two) = tokio::join!(
        at_a.post("/api/passkeys/challenge", &body),
        at_b.post("/api/passkeys/challenge", &body)
    );
    let mut statuses = [one.0, two.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403], "it counts once");
    let reject = json!({ "approved": false });
    at_b.decide(&session, &reject).await;
}
