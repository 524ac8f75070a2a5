use crate::environment::TestEnv;

#[test]
fn the_demo_loses_nothing_and_touches_nothing_of_the_user() {
    let env = TestEnv::new();
    let shown = env.run(&["demo"]);
    assert!(shown.starts_with("exit 0\n"), "{shown}");
    assert!(shown.contains("200 acknowledged, 0 lost"), "{shown}");
    assert!(shown.contains("12 refused or confined, nothing outside touched"), "{shown}");
    assert!(shown.contains("0 stray files"), "{shown}");
    assert!(shown.contains(" · lost 0 · "), "{shown}");
    assert_eq!(std::fs::read_dir(env.path("")).expect("listed").count(), 0);
}

#[test]
fn the_help_is_short_and_hides_what_is_not_for_people() {
    let shown = TestEnv::new().run(&["--help"]);
    assert!(shown.lines().count() < 33, "{shown}");
    assert!(!shown.contains("demo-writer"), "{shown}");
    let all = TestEnv::new().run(&["help", "--all"]);
    for name in ["str-replace", "memory-tool", "pull", "kinds"] {
        assert!(all.contains(&format!("\n  {name} ")), "{all}");
    }
}
