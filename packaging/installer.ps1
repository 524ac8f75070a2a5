# Installs haversack @VERSION@ for this user, or removes it again with -Uninstall.
#
# Variables: HAVERSACK_INSTALL_DIR (default %LOCALAPPDATA%\Programs\haversack), HAVERSACK_DOWNLOAD_URL (where the archives are).
param([switch]$Uninstall)
$ErrorActionPreference = 'Stop'

$version = '@VERSION@'
$base = if ($env:HAVERSACK_DOWNLOAD_URL) { $env:HAVERSACK_DOWNLOAD_URL } else { '@URL@' }
$programs = if ($env:HAVERSACK_INSTALL_DIR) { $env:HAVERSACK_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'Programs\haversack' }
$program = Join-Path $programs 'haversack.exe'
$checksums = @{
@CHECKSUMS@
}

if ($Uninstall) {
    if (Test-Path $program) { & $program uninstall }
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue $programs
    $path = [Environment]::GetEnvironmentVariable('Path', 'User')
    if ($path) {
        $kept = ($path -split ';' | Where-Object { $_ -and $_ -ne $programs }) -join ';'
        [Environment]::SetEnvironmentVariable('Path', $kept, 'User')
    }
    Write-Host "Removed the program haversack from $programs. Your memory files stay where they are."
    return
}

$triple = 'x86_64-pc-windows-gnu'
$expected = $checksums[$triple]
if (-not $expected) { throw "There is no program for $triple in this release. Other ways to install: pip install haversack, npm install haversack" }
$scratch = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory -Path $scratch | Out-Null
try {
    $name = "haversack-$version-$triple"
    $archive = Join-Path $scratch "$name.tar.gz"
    Invoke-WebRequest -UseBasicParsing -Uri "$base/$name.tar.gz" -OutFile $archive
    $found = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
    if ($found -ne $expected) { throw "The archive is not the one that was released: its SHA-256 is $found. Nothing was installed." }
    # Windows has tar since 2018.
    tar -xzf $archive -C $scratch
    New-Item -ItemType Directory -Force -Path $programs | Out-Null
    Copy-Item -Force (Join-Path $scratch "$name\haversack.exe") $program
    Copy-Item -Force (Join-Path $scratch "$name\completions\haversack.ps1") $programs
} finally {
    Remove-Item -Recurse -Force $scratch
}
$path = [Environment]::GetEnvironmentVariable('Path', 'User')
if (-not (($path -split ';') -contains $programs)) {
    [Environment]::SetEnvironmentVariable('Path', (@($path, $programs) -ne '' -join ';'), 'User')
    Write-Host 'Added it to your PATH. Open a new terminal for that.'
}
Write-Host "Installed haversack $version in $programs. See it work: haversack demo"
