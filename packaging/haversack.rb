# The Homebrew formula, filled in by `cargo xtask release`.
class Haversack < Formula
  desc "Carry an AI agent's memory to every machine you work on"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@ARCHIVES@
  def install
    bin.install "haversack"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/haversack.bash" => "haversack"
    zsh_completion.install "completions/_haversack"
    fish_completion.install "completions/haversack.fish"
  end

  test do
    assert_match "haversack #{version}", shell_output("#{bin}/haversack version")
    system bin/"haversack", "demo"
  end
end
