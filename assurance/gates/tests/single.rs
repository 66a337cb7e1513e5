//! A client that has the server for itself.

use sandglass_gates::{Gates, Parameters, Spec, UserCosts, US};

/// Ticks that the kernel takes at most while the server has the client's time.
const KERNEL: u64 = 220;

#[test]
fn a_client_alone_is_served_on_its_own_time() {
    let parameters = Parameters::default();
    let operation = *parameters.operation.end();
    let mut gates = Gates::new(&parameters);
    let client = gates.client(Spec::sporadic(0, 100, 5_000, 10_000), |client| async move {
        for number in 0..10 {
            client.compute(100 * US).await;
            let answer = client.request(&[number, 7]).await;
            assert_eq!(answer, (0, vec![2, number + 7]));
            client.next_period().await;
        }
    });
    let history = gates.run_until(200_000 * US);
    assert_eq!(history.requests.len(), 10);
    for request in &history.requests {
        let paid = history.paid(client, request.called, request.answered);
        assert_eq!(paid.stretches, 1);
        // The operation, what the server does beside it, and the kernel.
        let costs = UserCosts::default();
        let most = operation + costs.job + costs.enter + KERNEL;
        assert!((operation..most).contains(&paid.ticks), "{paid:?}");
    }
}
