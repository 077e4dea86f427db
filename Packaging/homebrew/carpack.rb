# A Homebrew formula that builds carpack from source, for a tap:
#   brew tap NAME/carpack ADDRESS && brew install carpack
# Each release sets the address and the digest of its source archive:
#   git archive --prefix=carpack-0.2.0/ v0.2.0 | gzip -9n | shasum -a 256
class Carpack < Formula
  desc "Back up AT Protocol accounts in one verified file"
  homepage "https://example.com/carpack"
  url "https://example.com/releases/v0.2.0/carpack-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"
  head "https://example.com/carpack.git", branch: "main"

  # The build asks for what its tests take, too.
  depends_on "age" => :build
  depends_on "pkgconf" => :build
  depends_on xcode: ["26.0", :build]
  depends_on "isa-l"
  depends_on macos: :tahoe
  depends_on "openssl@3"
  depends_on "xxhash"
  depends_on "zstd"

  uses_from_macos "python" => :build
  uses_from_macos "curl"
  uses_from_macos "sqlite"
  uses_from_macos "zlib"

  def install
    # Homebrew builds in a sandbox of its own, in which SwiftPM's does not work.
    system "make", "install", "PREFIX=#{prefix}", "SWIFT=swift", "SWIFT_FLAGS=--disable-sandbox"
  end

  # brew services start carpack: backs up the accounts of ~/.config/carpack/config.toml every night.
  service do
    run [opt_bin/"carpack", "backup", "--quiet"]
    run_type :cron
    cron "17 3 * * *"
    working_dir var/"carpack"
    error_log_path var/"log/carpack.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/carpack --version")
    (testpath/"not-an-archive").write "nothing"
    shell_output("#{bin}/carpack verify not-an-archive 2>&1", 11)
  end
end
